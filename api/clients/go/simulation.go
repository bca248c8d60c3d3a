package novaplace

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// SimulationRequest asks where VMs would go on nodes that need not exist.
type SimulationRequest struct {
	Name            string         `json:"name"`
	Description     string         `json:"description,omitempty"`
	VMs             []any          `json:"vms"`
	Nodes           []any          `json:"nodes"`
	PolicyIDs       []string       `json:"policy_ids,omitempty"`
	ConfigOverrides map[string]any `json:"config_overrides,omitempty"`
}

// Simulation is the outcome, and is kept by the service to be compared.
type Simulation struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Timestamp   time.Time `json:"timestamp"`
	PolicyIDs   []string  `json:"policy_ids"`
	// Results is empty in lists.
	Results []SimulatedVM     `json:"results"`
	Summary SimulationSummary `json:"summary"`
	// UnknownAttributes are read by the policies, and the service has no place for them.
	UnknownAttributes []string `json:"unknown_attributes"`
}

// SimulatedVM is where one VM would go.
type SimulatedVM struct {
	VMID         string  `json:"vm_id"`
	NodeID       string  `json:"node_id"`
	Filtered     bool    `json:"filtered"`
	FilterReason string  `json:"filter_reason"`
	Score        float64 `json:"score"`
	// PolicyResults is the points of each policy.
	PolicyResults map[string]float64 `json:"policy_results"`
}

// SimulationSummary counts.
type SimulationSummary struct {
	TotalVMs            int     `json:"total_vms"`
	TotalNodes          int     `json:"total_nodes"`
	TotalPlacements     int     `json:"total_placements"`
	FailedPlacements    int     `json:"failed_placements"`
	PlacementPercentage float64 `json:"placement_percentage"`
	AverageScore        float64 `json:"average_score"`
	// NodeUtilization is by node; left out of lists.
	NodeUtilization map[string]NodeUtilization `json:"node_utilization"`
}

// NodeUtilization is how full a node ends up, in percent.
type NodeUtilization struct {
	VMCount           int     `json:"vm_count"`
	CPUUtilization    float64 `json:"cpu_utilization"`
	MemoryUtilization float64 `json:"memory_utilization"`
}

// Simulate runs a simulation. It changes no node and no VM.
func (c *Client) Simulate(ctx context.Context, request SimulationRequest) (*Simulation, error) {
	request.VMs, request.Nodes = orEmpty(request.VMs), orEmpty(request.Nodes)
	return answerOf[Simulation](ctx, c, call{method: http.MethodPost, path: simulationsPath, body: request})
}

// Simulations lists those that the service has kept.
func (c *Client) Simulations(ctx context.Context) ([]Simulation, error) {
	return listOf[Simulation](ctx, c, read(simulationsPath))
}

// Simulation reads one of them.
func (c *Client) Simulation(ctx context.Context, id string) (*Simulation, error) {
	return answerOf[Simulation](ctx, c, read(pathTo(simulationsPath+"/", id)))
}

// CompareSimulations says how two differ, as the service describes it.
func (c *Client) CompareSimulations(ctx context.Context, a, b string) (map[string]any, error) {
	var comparison map[string]any
	request := read(simulationsPath + "/compare")
	request.query = url.Values{"a": {a}, "b": {b}}
	err := c.do(ctx, request, &comparison)
	return comparison, err
}

const simulationsPath = "/scheduler/simulations"
