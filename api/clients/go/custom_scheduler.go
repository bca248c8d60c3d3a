package novaplace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// DefaultSchedulerDeadline leaves room for a round trip and a decision, and stays below the 100 ms
// that NovaCron promises for a placement: its scheduler is locked meanwhile.
const DefaultSchedulerDeadline = 75 * time.Millisecond

// InventoryView is what a custom scheduler asks of an [InventorySyncer].
type InventoryView interface {
	// Generation is what the service was last known to have.
	Generation() uint64
	// Available is how many nodes it has that take VMs.
	Available() int
	// Resync asks for the whole inventory to be sent soon. It must not block.
	Resync()
}

// CustomSchedulerOptions say how to read the caller's types, and what to do without the service.
type CustomSchedulerOptions[V, N any] struct {
	// VM and Node read the caller's types. They run while NovaCron's scheduler is locked, so they
	// must not call it. Both are needed.
	VM   func(V) VMView
	Node func(N) NodeResourceInfo
	// Deadline of the call to the service. Default 75 ms.
	Deadline time.Duration
	// Inventory, if there is one, says which generation the service has.
	Inventory InventoryView
	// Limits are the checks of a node against NovaCron's own counters. A node that fails them is no
	// candidate: NovaCron would refuse the reservation that follows.
	Limits Limits
	// OverrideNoCapacity looks for a node also when the service says that there is none. The service
	// knows more than the node list does, so this is for those who trust the list more.
	OverrideNoCapacity bool
	// OnFallback hears why the service did not decide. It must be quick.
	OnFallback func(reason error)
	// Counters, if given, count.
	Counters *SchedulerCounters
	// Context ends calls early, at shutdown for example. Default context.Background().
	Context context.Context
}

// SchedulerCounters count how VMs were placed. They can be read at any time.
type SchedulerCounters struct {
	// Served by the service; Fallback without it; Refused by the service for want of capacity.
	Served, Fallback, Refused atomic.Uint64
	// Mismatch counts answers that were no candidates. Each of them led to a fallback, too.
	Mismatch atomic.Uint64
}

// NewCustomScheduler makes the function that NovaCron's vm.VMScheduler.SetCustomScheduler takes.
//
// The function sends the VM and the ids of the nodes that fit, never the nodes, and accepts only one
// of them as the answer. Of a large fleet that an inventory covers it sends not even the ids. If the service is late, failing, unreachable, at another generation or
// wrong, the function itself takes the least loaded of them: creating a VM never depends on the
// service. It returns an error when nothing fits, or when the service says so.
//
// A call that was given up may still have made a reservation. It expires, or moves to the node that
// the VM's created event names.
func NewCustomScheduler[V, N any](client *Client, options CustomSchedulerOptions[V, N]) func(V, []N) (string, error) {
	if client == nil || options.VM == nil || options.Node == nil {
		panic("novaplace: NewCustomScheduler needs a client, VM and Node")
	}
	if options.Counters == nil {
		options.Counters = new(SchedulerCounters)
	}
	if options.Context == nil {
		options.Context = context.Background()
	}
	options.Deadline = orDefault(options.Deadline, DefaultSchedulerDeadline)
	scheduler := customScheduler[V, N]{client, options}
	return scheduler.schedule
}

type customScheduler[V, N any] struct {
	client  *Client
	options CustomSchedulerOptions[V, N]
}

func (s customScheduler[V, N]) schedule(v V, nodes []N) (string, error) {
	if len(nodes) == 0 {
		return "", errNoCandidates
	}
	vm := s.options.VM(v)
	candidates, available := s.candidates(vm, nodes)
	if len(candidates) == 0 {
		return "", ErrNoNodeFits
	}
	chosen, err := s.remote(vm, candidates, available)
	if err == nil {
		s.options.Counters.Served.Add(1)
		return chosen, nil
	}
	if errors.Is(err, ErrNoCapacity) && !s.options.OverrideNoCapacity {
		s.options.Counters.Refused.Add(1)
		return "", err
	}
	s.options.Counters.Fallback.Add(1)
	if s.options.OnFallback != nil {
		s.options.OnFallback(err)
	}
	return leastLoaded(candidates), nil
}

// candidates are the nodes that fit; available counts those that take VMs at all.
func (s customScheduler[V, N]) candidates(vm VMView, nodes []N) (candidates []candidate, available int) {
	candidates = make([]candidate, 0, len(nodes))
	for i := range nodes {
		node := s.options.Node(nodes[i])
		if s.options.Limits.seen(node).Status == StatusAvailable {
			available++
		}
		if s.options.Limits.admit(vm, node) {
			candidates = append(candidates, candidate{node.NodeID, loadOf(node)})
		}
	}
	return candidates, available
}

// longList is how many candidates are named whatever they are. Naming a whole fleet takes both sides
// longer than the choice itself.
const longList = 256

// known reports whether the service, left to itself, would choose among the same candidates: it has
// as many nodes as there are, and what sets candidates apart is their room, which it knows. If it is
// wrong about one after all, the check of the answer finds that.
func (s customScheduler[V, N]) known(vm VMView, available int) bool {
	byLabel := s.options.Limits.EnableNodeLabels && len(vm.Tags) > 0
	return s.options.Inventory != nil && s.options.Inventory.Available() == available && !byLabel
}

// remote asks the service and checks its answer.
func (s customScheduler[V, N]) remote(vm VMView, candidates []candidate, available int) (string, error) {
	request := ScheduleRequest{VM: vm.Config}
	if len(candidates) <= longList || !s.known(vm, available) {
		request.CandidateNodeIDs = make([]string, len(candidates))
		for i, candidate := range candidates {
			request.CandidateNodeIDs[i] = candidate.id
		}
	}
	if s.options.Inventory != nil {
		request.Generation = s.options.Inventory.Generation()
	}
	ctx, cancel := context.WithTimeout(s.options.Context, s.options.Deadline)
	defer cancel()
	answer, err := s.client.Schedule(ctx, vm.ID, request)
	if err != nil {
		if errors.Is(err, ErrConflict) && s.options.Inventory != nil {
			s.options.Inventory.Resync()
		}
		return "", err
	}
	if !slices.ContainsFunc(candidates, func(c candidate) bool { return c.id == answer.NodeID }) {
		s.options.Counters.Mismatch.Add(1)
		return "", fmt.Errorf("novaplace: the service answered node %q, which is no candidate", answer.NodeID)
	}
	return answer.NodeID, nil
}

var errNoCandidates = errors.New("no nodes available for scheduling")
