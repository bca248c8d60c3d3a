package novaplace

import (
	"context"
	"net/http"
	"time"
)

// The types below have the JSON keys and the Go field names of NovaCron's orchestration/placement,
// for callers that do not import it.

// PlacementRequest asks where a VM should go.
type PlacementRequest struct {
	VMID         string         `json:"vm_id"`
	VMSpec       VMSpec         `json:"vm_spec"`
	Constraints  []Constraint   `json:"constraints"`
	Preferences  []Preference   `json:"preferences"`
	Strategy     string         `json:"strategy"`
	ExcludeNodes []string       `json:"exclude_nodes,omitempty"`
	Context      map[string]any `json:"context,omitempty"`
}

// VMSpec is what the VM needs.
type VMSpec struct {
	CPU      int                 `json:"cpu_cores"`
	Memory   int64               `json:"memory_mb"`
	Storage  int64               `json:"storage_gb"`
	Network  NetworkRequirements `json:"network"`
	GPU      *GPURequirements    `json:"gpu,omitempty"`
	Labels   map[string]string   `json:"labels,omitempty"`
	Metadata map[string]any      `json:"metadata,omitempty"`
}

// NetworkRequirements of a VM.
type NetworkRequirements struct {
	BandwidthMbps int      `json:"bandwidth_mbps,omitempty"`
	LatencyMs     int      `json:"latency_ms,omitempty"`
	Networks      []string `json:"networks,omitempty"`
	PublicIP      bool     `json:"public_ip,omitempty"`
}

// GPURequirements of a VM.
type GPURequirements struct {
	Count    int    `json:"count"`
	Model    string `json:"model,omitempty"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	Shared   bool   `json:"shared,omitempty"`
}

// Constraint is affinity, anti_affinity, resource_limit, network_latency, compliance, cost or
// availability; its enforcement is hard, soft or preferred.
type Constraint struct {
	Type        string         `json:"type"`
	Enforcement string         `json:"enforcement"`
	Parameters  map[string]any `json:"parameters"`
	Weight      float64        `json:"weight,omitempty"`
}

// Preference is low_latency, high_bandwidth, low_cost, local_storage or gpu_optimized.
type Preference struct {
	Type       string         `json:"type"`
	Weight     float64        `json:"weight"`
	Parameters map[string]any `json:"parameters"`
}

// PlacementDecision is the answer.
type PlacementDecision struct {
	RequestID    string         `json:"request_id"`
	VMID         string         `json:"vm_id"`
	SelectedNode string         `json:"selected_node"`
	Score        float64        `json:"score"`
	Confidence   float64        `json:"confidence"`
	Explanation  string         `json:"explanation"`
	Alternatives []Alternative  `json:"alternatives"`
	Timestamp    time.Time      `json:"timestamp"`
	Metadata     map[string]any `json:"metadata,omitempty"`
}

// Node is a node as orchestration/placement describes it.
type Node struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Region      string            `json:"region,omitempty"`
	Zone        string            `json:"zone,omitempty"`
	Rack        string            `json:"rack,omitempty"`
	Capacity    NodeCapacity      `json:"capacity"`
	Available   NodeCapacity      `json:"available"`
	State       string            `json:"state"`
	Health      float64           `json:"health"`
	Cost        float64           `json:"cost,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []Taint           `json:"taints,omitempty"`
	Metadata    map[string]any    `json:"metadata,omitempty"`
	LastUpdated time.Time         `json:"last_updated"`
}

// NodeCapacity is what a node has, or has left.
type NodeCapacity struct {
	CPU         int   `json:"cpu_cores"`
	Memory      int64 `json:"memory_mb"`
	Storage     int64 `json:"storage_gb"`
	NetworkMbps int   `json:"network_mbps"`
	GPUs        []GPU `json:"gpus,omitempty"`
}

// GPU is one device.
type GPU struct {
	ID       string `json:"id"`
	Model    string `json:"model"`
	MemoryMB int64  `json:"memory_mb"`
	InUse    bool   `json:"in_use"`
}

// Taint keeps VMs away; its effect is NoSchedule, PreferNoSchedule or NoExecute.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// NodeScore is how well a node would do.
type NodeScore struct {
	Node      *Node          `json:"node"`
	Score     float64        `json:"score"`
	Breakdown ScoreBreakdown `json:"breakdown"`
	Feasible  bool           `json:"feasible"`
	Reason    string         `json:"reason,omitempty"`
}

// ScoreBreakdown is where a score comes from.
type ScoreBreakdown struct {
	ResourceScore   float64 `json:"resource_score"`
	ConstraintScore float64 `json:"constraint_score"`
	PreferenceScore float64 `json:"preference_score"`
	HealthScore     float64 `json:"health_score"`
	CostScore       float64 `json:"cost_score,omitempty"`
	LocationScore   float64 `json:"location_score,omitempty"`
}

// PlaceVM decides where a VM should go, over the synced inventory. Like NovaCron's own it holds
// nothing, unless the request's context has reserve set to true.
func (c *Client) PlaceVM(ctx context.Context, request *PlacementRequest) (*PlacementDecision, error) {
	decision := new(PlacementDecision)
	if err := c.placeVM(ctx, request, decision); err != nil {
		return nil, err
	}
	return decision, nil
}

// EvaluateNodes scores the given nodes for a VM.
func (c *Client) EvaluateNodes(ctx context.Context, request *PlacementRequest, nodes []*Node) ([]*NodeScore, error) {
	var scores []*NodeScore
	err := c.evaluateNodes(ctx, request, orEmpty(nodes), &scores)
	return scores, err
}

func (c *Client) placeVM(ctx context.Context, request, decision any) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/api/orchestration/placement", body: request}, decision)
}

func (c *Client) evaluateNodes(ctx context.Context, request, nodes, scores any) error {
	body := struct {
		Request any `json:"request"`
		Nodes   any `json:"nodes"`
	}{request, nodes}
	return c.do(ctx, call{
		method: http.MethodPost, path: "/api/orchestration/placement/evaluate", body: body, idempotent: true,
	}, scores)
}
