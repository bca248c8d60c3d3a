package novaplace

import (
	"context"
	"net/http"
	"time"
)

// ScheduleRequest asks for a node for one VM.
type ScheduleRequest struct {
	// VM is a [VMConfig] or any value that is encoded with the same keys.
	VM any `json:"vm"`
	// CandidateNodeIDs limits the choice; without it every node of the synced inventory is one.
	CandidateNodeIDs []string `json:"candidate_node_ids,omitempty"`
	// Nodes replaces the synced inventory for this call. Convenient for ten nodes, slow for 10,000.
	Nodes []NodeResourceInfo `json:"nodes,omitempty"`
	// Generation is the inventory that the caller believes the service has; zero is none in particular.
	Generation uint64 `json:"generation,omitempty"`
	// Config are the scheduler's settings for this VM; without them the service's own apply.
	Config *SchedulerConfig `json:"config,omitempty"`
}

// SchedulerConfig is what NovaCron's vm.SchedulerConfig looks like on the wire.
type SchedulerConfig struct {
	// Policy is round_robin, bin_packing, spread_out or custom.
	Policy                 string  `json:"policy"`
	EnableResourceChecking bool    `json:"enable_resource_checking"`
	EnableAntiAffinity     bool    `json:"enable_anti_affinity"`
	EnableNodeLabels       bool    `json:"enable_node_labels"`
	MaxVMsPerNode          int     `json:"max_vms_per_node"`
	MaxCPUOvercommit       float64 `json:"max_cpu_overcommit"`
	MaxMemoryOvercommit    float64 `json:"max_memory_overcommit"`
}

// ScheduleResponse names the node, and why it is the one.
type ScheduleResponse struct {
	VMID         string        `json:"vm_id"`
	NodeID       string        `json:"node_id"`
	Score        float64       `json:"score"`
	Confidence   float64       `json:"confidence"`
	Explanation  string        `json:"explanation"`
	Alternatives []Alternative `json:"alternatives"`
	Generation   uint64        `json:"generation"`
	// ReservationID is the room held for the VM until an event confirms it or it expires.
	ReservationID string `json:"reservation_id,omitempty"`
	// ReservationTTL is how long it is held.
	ReservationTTL time.Duration `json:"reservation_ttl,omitempty"`
}

// Alternative is another node that would have done.
type Alternative struct {
	NodeID      string  `json:"node_id"`
	Score       float64 `json:"score"`
	Explanation string  `json:"explanation"`
}

// Schedule chooses a node for a VM and holds room on it. Asked again for the same VM, the service
// gives the same answer, so the call may be repeated.
func (c *Client) Schedule(ctx context.Context, vmID string, request ScheduleRequest) (*ScheduleResponse, error) {
	path := pathTo("/scheduler/vms/", vmID, "/schedule")
	answer := new(ScheduleResponse)
	if err := c.do(ctx, call{method: http.MethodPost, path: path, body: request, idempotent: true}, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Nodes lists every node.
func (c *Client) Nodes(ctx context.Context) ([]NodeResourceInfo, error) {
	var nodes []NodeResourceInfo
	err := c.do(ctx, call{method: http.MethodGet, path: "/scheduler/nodes", idempotent: true}, &nodes)
	return nodes, err
}

// Node reads one node.
func (c *Client) Node(ctx context.Context, id string) (*NodeResourceInfo, error) {
	node := new(NodeResourceInfo)
	if err := c.do(ctx, call{method: http.MethodGet, path: nodePath(id), idempotent: true}, node); err != nil {
		return nil, err
	}
	return node, nil
}

// RegisterNode makes a node known; [ErrConflict] if it is already.
func (c *Client) RegisterNode(ctx context.Context, node NodeResourceInfo) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/scheduler/nodes", body: node}, nil)
}

// UpdateNode replaces what is known of a node; [ErrNotFound] if nothing is.
func (c *Client) UpdateNode(ctx context.Context, node NodeResourceInfo) error {
	return c.do(ctx, call{method: http.MethodPut, path: nodePath(node.NodeID), body: node, idempotent: true}, nil)
}

// DeleteNode forgets a node.
func (c *Client) DeleteNode(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: nodePath(id), idempotent: true}, nil)
}

func nodePath(id string) string {
	return pathTo("/scheduler/nodes/", id)
}

// Inventory is every node at once. Generations are the sender's own numbers; they only grow.
type Inventory struct {
	Generation uint64             `json:"generation"`
	Nodes      []NodeResourceInfo `json:"nodes"`
	// TakenAt is when the sender looked, by the clock of its events. Events from before are included
	// in what the nodes use.
	TakenAt *time.Time `json:"taken_at,omitempty"`
	// VMs that the nodes' use includes; without them the service works it out from events.
	VMs []InventoryVM `json:"vms,omitempty"`
}

// InventoryVM is a VM that runs on a node.
type InventoryVM struct {
	VMID   string `json:"vm_id"`
	NodeID string `json:"node_id"`
	// Config is a [VMConfig] or any value that is encoded with the same keys.
	Config any `json:"config,omitempty"`
}

// InventoryDelta is what has changed since a generation.
type InventoryDelta struct {
	BaseGeneration uint64 `json:"base_generation"`
	// Generation that the delta leads to; zero is the one after the base.
	Generation uint64             `json:"generation,omitempty"`
	Upsert     []NodeResourceInfo `json:"upsert"`
	Remove     []string           `json:"remove"`
	TakenAt    *time.Time         `json:"taken_at,omitempty"`
	VMs        []InventoryVM      `json:"vms,omitempty"`
}

// InventoryState is what the service has now.
type InventoryState struct {
	Generation uint64 `json:"generation"`
	Nodes      int    `json:"nodes"`
	Added      int    `json:"added"`
	Removed    int    `json:"removed"`
	// Repeated means that the same delta had come before.
	Repeated bool `json:"repeated"`
	// Refused are nodes that could not be taken over as they are. They get no new VMs.
	Refused []RefusedNode `json:"refused"`
}

// RefusedNode is a node that has less than what is promised on it, for example.
type RefusedNode struct {
	NodeID string `json:"node_id"`
	Reason string `json:"reason"`
}

// PutInventory replaces the whole inventory.
func (c *Client) PutInventory(ctx context.Context, inventory Inventory) (*InventoryState, error) {
	inventory.Nodes = orEmpty(inventory.Nodes)
	state := new(InventoryState)
	err := c.do(ctx, call{method: http.MethodPut, path: "/scheduler/inventory", body: inventory, idempotent: true}, state)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// PatchInventory changes it. The answer is [ErrConflict] unless the service is at the delta's base
// generation; then only a whole inventory helps. The very same delta twice is taken once.
func (c *Client) PatchInventory(ctx context.Context, delta InventoryDelta) (*InventoryState, error) {
	delta.Upsert, delta.Remove = orEmpty(delta.Upsert), orEmpty(delta.Remove)
	state := new(InventoryState)
	err := c.do(ctx, call{method: http.MethodPatch, path: "/scheduler/inventory", body: delta, idempotent: true}, state)
	if err != nil {
		return nil, err
	}
	return state, nil
}

// Event is something that happened to a VM.
type Event struct {
	// Type is one of NovaCron's: created, started, stopped, restarted, deleted, paused, resumed,
	// migrating, migrated, snapshot, backup, restore, updated, error.
	Type   string `json:"type"`
	VMID   string `json:"vm_id"`
	NodeID string `json:"node_id"`
	// Timestamp orders the events of a VM, and tells a duplicate from a repetition.
	Timestamp time.Time `json:"timestamp"`
	State     string    `json:"state,omitempty"`
	// Config is a [VMConfig] or any value that is encoded with the same keys.
	Config any `json:"config,omitempty"`
}

// EventResult is what an event came to.
type EventResult struct {
	VMID string `json:"vm_id"`
	// Outcome is confirmed, adopted, moved, resized, released, known, late, ignored or refused.
	Outcome string `json:"outcome"`
	// OverCapacity means that the VM does not fit where it runs.
	OverCapacity bool   `json:"over_capacity"`
	Message      string `json:"message"`
}

// OutcomeRefused is the outcome of an event that makes no sense to the service.
const OutcomeRefused = "refused"

// ReportEvents tells the service of events; telling it twice changes nothing. There is a result for
// each, in the same order: one that is refused does not keep the others back.
func (c *Client) ReportEvents(ctx context.Context, events ...Event) ([]EventResult, error) {
	if len(events) == 0 {
		return nil, nil
	}
	body := struct {
		Events []Event `json:"events"`
	}{events}
	var answer struct {
		Results []EventResult `json:"results"`
	}
	err := c.do(ctx, call{method: http.MethodPost, path: "/scheduler/events", body: body, idempotent: true}, &answer)
	return answer.Results, err
}

// orEmpty keeps nil out of requests where a list is meant.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Weights says how much each part of a score counts.
type Weights struct {
	Values map[string]int
	// Tag is the version that was read. Setting weights that carry one fails with [ErrConflict] if
	// somebody else has set them since.
	Tag string
}

// Weights reads the weights in force.
func (c *Client) Weights(ctx context.Context) (*Weights, error) {
	weights := new(Weights)
	request := call{method: http.MethodGet, path: "/v1/weights", idempotent: true, etag: &weights.Tag}
	if err := c.do(ctx, request, &weights.Values); err != nil {
		return nil, err
	}
	return weights, nil
}

// SetWeights replaces them; what is left out counts nothing. It returns those in force.
func (c *Client) SetWeights(ctx context.Context, weights Weights) (*Weights, error) {
	set := new(Weights)
	request := call{
		method: http.MethodPut, path: "/v1/weights", body: weights.Values,
		// With a tag, a repetition after a success that got lost would look like a conflict.
		idempotent: weights.Tag == "", ifMatch: weights.Tag, etag: &set.Tag,
	}
	if err := c.do(ctx, request, &set.Values); err != nil {
		return nil, err
	}
	return set, nil
}
