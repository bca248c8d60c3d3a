package novaplace

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// core is NovaCron's scheduler and manager in miniature: the seam that the custom scheduler has to
// fit, with the lock around the callback, the filters before it, and the books after it. VMs of every
// policy go to the custom scheduler, as they do once the patch that README.md proposes is in.
type core struct {
	limits Limits
	custom func(*myVM, []myNode) (string, error)
	quota  int

	mu          sync.RWMutex
	nodes       map[string]*NodeResourceInfo
	allocations map[string]allocation
	tenants     map[string]int
}

type allocation struct {
	node                string
	cores, memory, disk int
}

// codedError has a code as NovaCron's VMError has.
type codedError struct {
	code  string
	cause error
}

func (e *codedError) Error() string { return e.code + ": " + e.cause.Error() }
func (e *codedError) Unwrap() error { return e.cause }

func codeOf(err error) string {
	var coded *codedError
	errors.As(err, &coded)
	if coded == nil {
		return ""
	}
	return coded.code
}

// schedule runs the callback under the read lock, as NovaCron does.
func (c *core) schedule(vm *myVM) (string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.nodes) == 0 {
		return "", errors.New("no nodes available for scheduling")
	}
	var open []myNode
	for _, node := range c.nodes {
		if node.Status == StatusAvailable {
			open = append(open, node)
		}
	}
	if len(open) == 0 {
		return "", errors.New("no available nodes for scheduling")
	}
	open, err := placed(open, vm.config.Placement)
	if err != nil {
		return "", err
	}
	return c.custom(vm, open)
}

// placed applies exclusions, which are hard, and preferences, which are not.
func placed(nodes []myNode, placement *VMPlacementSpec) ([]myNode, error) {
	if placement == nil {
		return nodes, nil
	}
	var left, preferred []myNode
	for _, node := range nodes {
		if slices.Contains(placement.ExcludedNodes, node.NodeID) {
			continue
		}
		left = append(left, node)
		if slices.Contains(placement.PreferredNodes, node.NodeID) {
			preferred = append(preferred, node)
		}
	}
	if len(left) == 0 {
		return nil, errors.New("no available nodes remain after applying placement exclusions")
	}
	if len(preferred) > 0 {
		return preferred, nil
	}
	return left, nil
}

func (c *core) reserve(vm *myVM, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.nodes[id]
	if node == nil {
		return fmt.Errorf("node %s is not registered", id)
	}
	if !c.limits.admit(viewOf(vm), *node) {
		return fmt.Errorf("node %s no longer has enough resources for VM %s", id, vm.id)
	}
	taken := allocation{id, CPUCores(vm.config.CPUShares), vm.config.MemoryMB, vm.config.DiskSizeGB}
	c.allocations[vm.id] = taken
	c.book(node, taken, 1)
	return nil
}

func (c *core) release(vmID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken, ok := c.allocations[vmID]; ok {
		delete(c.allocations, vmID)
		c.book(c.nodes[taken.node], taken, -1)
	}
}

func (c *core) book(node *NodeResourceInfo, taken allocation, sign int) {
	node.UsedCPU += sign * taken.cores
	node.UsedMemoryMB += sign * taken.memory
	node.UsedDiskGB += sign * taken.disk
	node.VMCount += sign
	node.CPUUsagePercent = 100 * usedShare(node.UsedCPU, node.TotalCPU)
	node.MemoryUsagePercent = 100 * usedShare(node.UsedMemoryMB, node.TotalMemoryMB)
	node.DiskUsagePercent = 100 * usedShare(node.UsedDiskGB, node.TotalDiskGB)
}

func (c *core) list() []NodeResourceInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var nodes []NodeResourceInfo
	for _, node := range c.nodes {
		nodes = append(nodes, *node)
	}
	return nodes
}

// admit is the manager's check: sums over the nodes that the VM may go to.
func (c *core) admit(vm *myVM) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var open []myNode
	for _, node := range c.nodes {
		if node.Status == StatusAvailable {
			open = append(open, node)
		}
	}
	open, err := placed(open, vm.config.Placement)
	if err != nil {
		return &codedError{CodePlacementUnavailable, err}
	}
	free := 0
	for _, node := range open {
		free += stretched(node.TotalCPU, c.limits.MaxCPUOvercommit) - node.UsedCPU
	}
	if need := CPUCores(vm.config.CPUShares); need > free {
		return &codedError{CodeInsufficientCapacity, fmt.Errorf("insufficient aggregate CPU capacity: need %d, have %d", need, free)}
	}
	return nil
}

// create does what the manager does for a new VM, in its order.
func (c *core) create(vm *myVM) (string, error) {
	c.mu.Lock()
	if c.tenants[vm.config.TenantID]++; c.quota > 0 && c.tenants[vm.config.TenantID] > c.quota {
		c.tenants[vm.config.TenantID]--
		c.mu.Unlock()
		return "", &codedError{"QUOTA_EXCEEDED", errors.New("the tenant has its VMs")}
	}
	c.mu.Unlock()
	if err := c.admit(vm); err != nil {
		return "", err
	}
	id, err := c.schedule(vm)
	if err != nil {
		return "", &codedError{CodePlacementUnavailable, err}
	}
	if err := c.reserve(vm, id); err != nil {
		return "", &codedError{CodeInsufficientCapacity, err}
	}
	return id, nil
}

// world is a core that is wired to a service, with names that no other world has.
type world struct {
	*core
	t        *testing.T
	client   *Client
	counters *SchedulerCounters
	syncer   *InventorySyncer
	prefix   string
	vms      []*myVM
}

var worlds atomic.Int64

func newWorld(t *testing.T, client *Client, limits Limits, nodes ...NodeResourceInfo) *world {
	w := &world{
		core: &core{
			limits: limits, nodes: map[string]*NodeResourceInfo{},
			allocations: map[string]allocation{}, tenants: map[string]int{},
		},
		t: t, client: client, prefix: fmt.Sprintf("w%x-%d-", rand.Uint32(), worlds.Add(1)),
	}
	for _, node := range nodes {
		node := node
		node.NodeID = w.prefix + node.NodeID
		w.nodes[node.NodeID] = &node
	}
	w.syncer = NewInventorySyncer(client, w.list, InventorySyncerOptions{Limits: limits})
	w.wire(client, func(*CustomSchedulerOptions[*myVM, myNode]) {})
	mustSync(t, w.syncer)
	t.Cleanup(w.leave)
	return w
}

// wire puts a custom scheduler into the core.
func (w *world) wire(client *Client, change func(*CustomSchedulerOptions[*myVM, myNode])) {
	options := schedulerOptions()
	options.Limits, options.Inventory = w.limits, w.syncer
	change(&options)
	w.counters, w.custom = options.Counters, NewCustomScheduler(client, options)
}

// vm makes a VM; names of nodes in its placement are those that newWorld was given.
func (w *world) vm(config VMConfig) *myVM {
	id := fmt.Sprintf("%svm%d", w.prefix, len(w.vms))
	config.ID, config.Name, config.Type = id, id, "kvm"
	if config.Placement != nil {
		placement := *config.Placement
		placement.PreferredNodes, placement.ExcludedNodes = w.ids(placement.PreferredNodes), w.ids(placement.ExcludedNodes)
		config.Placement = &placement
	}
	vm := &myVM{id, config}
	w.vms = append(w.vms, vm)
	return vm
}

func (w *world) ids(names []string) []string {
	var ids []string
	for _, name := range names {
		ids = append(ids, w.prefix+name)
	}
	return ids
}

// start creates a VM and lets the service know, as the bridge and the syncer would.
func (w *world) start(vm *myVM) (string, error) {
	id, err := w.create(vm)
	if err != nil {
		return "", err
	}
	w.report("created", vm, id)
	mustSync(w.t, w.syncer)
	return strings.TrimPrefix(id, w.prefix), nil
}

func (w *world) end(vm *myVM) {
	w.release(vm.id)
	w.report("deleted", vm, "")
	mustSync(w.t, w.syncer)
}

func (w *world) report(kind string, vm *myVM, node string) {
	w.t.Helper()
	event := Event{Type: kind, VMID: vm.id, NodeID: node, Timestamp: time.Now(), Config: vm.config}
	if results, err := w.client.ReportEvents(context.Background(), event); err != nil || results[0].Outcome == OutcomeRefused {
		w.t.Errorf("%s of %s: %v, %v", kind, vm.id, results, err)
	}
}

func (w *world) leave() {
	for _, vm := range w.vms {
		w.release(vm.id)
		w.report("deleted", vm, "")
	}
}

// on fails unless a VM of the configuration is started on the node.
func (w *world) on(want string, config VMConfig) *myVM {
	w.t.Helper()
	vm := w.vm(config)
	if got, err := w.start(vm); got != want || err != nil {
		w.t.Errorf("got %q, %v; want %q", got, err, want)
	}
	return vm
}
