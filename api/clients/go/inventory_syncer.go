package novaplace

import (
	"context"
	"errors"
	"maps"
	"math/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// InventorySyncerOptions time an [InventorySyncer].
type InventorySyncerOptions struct {
	// Interval between two looks at the nodes, give or take a tenth. Default 2 s. After a failure it
	// doubles up to MaxInterval, default 30 s.
	Interval, MaxInterval time.Duration
	// Timeout of one sync. Default 10 s.
	Timeout time.Duration
	// Limits are those of the scheduler. The service gets the nodes as they are within them, so that
	// it fills a node as far as NovaCron would.
	Limits Limits
	// OnError hears of every sync that failed.
	OnError func(error)
	// OnRefused hears of nodes that the service could not take over, each time they are sent.
	OnRefused func(RefusedNode)
}

// InventorySyncer keeps the service's picture of the nodes up to date: everything at first, then
// what has changed, and everything again whenever the service is not where it is thought to be.
type InventorySyncer struct {
	client  *Client
	source  func() []NodeResourceInfo
	options InventorySyncerOptions
	poke    chan struct{}

	// acknowledged is the generation that the service was last known to have.
	acknowledged atomic.Uint64
	available    atomic.Int64
	whole        atomic.Bool

	mu sync.Mutex
	// issued is the last generation that was given out, whether or not it arrived.
	issued uint64
	sent   map[string]NodeResourceInfo
	stats  SyncStats
}

// SyncStats is what a syncer has counted: whole inventories and deltas that the service took, times
// when nothing had changed, times when the service was at another generation, and failures.
type SyncStats struct {
	Full, Deltas, Unchanged, Gaps, Failed int
}

// NewInventorySyncer makes a syncer that reads the nodes by the given function. The function returns
// copies: what it returned must not change later.
func NewInventorySyncer(client *Client, source func() []NodeResourceInfo, options InventorySyncerOptions) *InventorySyncer {
	if client == nil || source == nil {
		panic("novaplace: NewInventorySyncer needs a client and a source")
	}
	options.Interval = orDefault(options.Interval, 2*time.Second)
	options.MaxInterval = max(orDefault(options.MaxInterval, 30*time.Second), options.Interval)
	options.Timeout = orDefault(options.Timeout, 10*time.Second)
	return &InventorySyncer{
		client:  client,
		source:  source,
		options: options,
		poke:    make(chan struct{}, 1),
		// The service keeps the last generation over our restarts, so a new process must start above
		// what an older one has given out; the clock does that without a file.
		issued: uint64(time.Now().UnixMilli()),
	}
}

// Run syncs until the context ends, and returns why it ended.
func (s *InventorySyncer) Run(ctx context.Context) error {
	failures := 0
	for {
		if err := s.bounded(ctx); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			if s.options.OnError != nil {
				s.options.OnError(err)
			}
		}
		timer := time.NewTimer(s.pause(failures))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		case <-s.poke:
			timer.Stop()
		}
	}
}

func (s *InventorySyncer) bounded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	return s.Sync(ctx)
}

func (s *InventorySyncer) pause(failures int) time.Duration {
	pause := doubled(s.options.Interval, failures, s.options.MaxInterval)
	return pause - pause/10 + time.Duration(rand.Int63n(int64(pause/5)+1))
}

// Generation is what the service was last known to have; zero before the first sync.
func (s *InventorySyncer) Generation() uint64 {
	return s.acknowledged.Load()
}

// Available is how many nodes that take VMs the service was last sent.
func (s *InventorySyncer) Available() int {
	return int(s.available.Load())
}

// Resync makes the next sync a whole one, and wakes Run for it.
func (s *InventorySyncer) Resync() {
	s.whole.Store(true)
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Stats reads the counters.
func (s *InventorySyncer) Stats() SyncStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Sync looks at the nodes once and sends what is needed.
func (s *InventorySyncer) Sync(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Before the nodes are read: what happened until now is in what they say.
	taken := time.Now()
	nodes := byID(s.source())
	for id, node := range nodes {
		nodes[id] = s.options.Limits.seen(node)
	}
	err := s.send(ctx, nodes, taken)
	if err != nil {
		s.stats.Failed++
	}
	return err
}

func (s *InventorySyncer) send(ctx context.Context, nodes map[string]NodeResourceInfo, taken time.Time) error {
	if s.whole.Swap(false) || s.sent == nil {
		return s.sendAll(ctx, nodes, taken)
	}
	delta := difference(s.sent, nodes)
	if len(delta.Upsert) == 0 && len(delta.Remove) == 0 {
		s.stats.Unchanged++
		return nil
	}
	s.issued++
	delta.BaseGeneration, delta.Generation, delta.TakenAt = s.acknowledged.Load(), s.issued, &taken
	state, err := s.client.PatchInventory(ctx, delta)
	if errors.Is(err, ErrConflict) {
		s.stats.Gaps++
		return s.sendAll(ctx, nodes, taken)
	}
	if err != nil {
		return err
	}
	s.stats.Deltas++
	s.accept(nodes, state)
	return nil
}

func (s *InventorySyncer) sendAll(ctx context.Context, nodes map[string]NodeResourceInfo, taken time.Time) error {
	s.issued++
	state, err := s.client.PutInventory(ctx, Inventory{Generation: s.issued, Nodes: sorted(nodes), TakenAt: &taken})
	if err != nil {
		// Whatever the service has now, the next sync must not build on it.
		s.sent = nil
		return err
	}
	s.stats.Full++
	s.accept(nodes, state)
	return nil
}

func (s *InventorySyncer) accept(nodes map[string]NodeResourceInfo, state *InventoryState) {
	s.sent = nodes
	available := 0
	for _, node := range nodes {
		if node.Status == StatusAvailable {
			available++
		}
	}
	s.available.Store(int64(available))
	if s.options.OnRefused != nil {
		for _, refused := range state.Refused {
			s.options.OnRefused(refused)
		}
	}
	if state.Generation != 0 {
		s.issued = max(s.issued, state.Generation)
		s.acknowledged.Store(state.Generation)
	} else {
		s.acknowledged.Store(s.issued)
	}
}

// byID keeps the last node of each id, and its labels as they are now.
func byID(nodes []NodeResourceInfo) map[string]NodeResourceInfo {
	index := make(map[string]NodeResourceInfo, len(nodes))
	for _, node := range nodes {
		if node.NodeID != "" {
			node.Labels = maps.Clone(node.Labels)
			index[node.NodeID] = node
		}
	}
	return index
}

// difference says how to get from old to new.
func difference(old, new map[string]NodeResourceInfo) InventoryDelta {
	changed := make(map[string]NodeResourceInfo)
	for id, node := range new {
		if before, known := old[id]; !known || !same(before, node) {
			changed[id] = node
		}
	}
	var gone []string
	for id := range old {
		if _, there := new[id]; !there {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return InventoryDelta{Upsert: sorted(changed), Remove: gone}
}

func same(a, b NodeResourceInfo) bool {
	return a.NodeID == b.NodeID && a.Status == b.Status && a.VMCount == b.VMCount &&
		a.TotalCPU == b.TotalCPU && a.UsedCPU == b.UsedCPU && a.CPUUsagePercent == b.CPUUsagePercent &&
		a.TotalMemoryMB == b.TotalMemoryMB && a.UsedMemoryMB == b.UsedMemoryMB && a.MemoryUsagePercent == b.MemoryUsagePercent &&
		a.TotalDiskGB == b.TotalDiskGB && a.UsedDiskGB == b.UsedDiskGB && a.DiskUsagePercent == b.DiskUsagePercent &&
		maps.Equal(a.Labels, b.Labels)
}

// sorted lists nodes by id, so that equal inventories are equal bytes.
func sorted(nodes map[string]NodeResourceInfo) []NodeResourceInfo {
	ids := make([]string, 0, len(nodes))
	for id := range nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := make([]NodeResourceInfo, len(ids))
	for i, id := range ids {
		list[i] = nodes[id]
	}
	return list
}
