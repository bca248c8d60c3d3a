package novaplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// EventBridgeOptions bound an [EventBridge].
type EventBridgeOptions struct {
	// QueueSize is how many events may wait; beyond, the oldest is dropped. Default 4096.
	QueueSize int
	// BatchSize is how many events go in one call at most. Default 128.
	BatchSize int
	// SendTimeout bounds one call. Default 5 s.
	SendTimeout time.Duration
	// RetryDelay is the first wait after a failure. It doubles up to MaxRetryDelay, and each wait is
	// random up to that. Defaults: 100 ms and 5 s.
	RetryDelay, MaxRetryDelay time.Duration
	// OnLost hears of each event that will not arrive, and why. It must be quick, and not call the
	// bridge.
	OnLost func(Event, error)
}

// Why an event did not arrive.
var (
	ErrQueueFull     = errors.New("novaplace: the event queue is full")
	ErrBridgeClosed  = errors.New("novaplace: the event bridge is closed")
	ErrEventRejected = errors.New("novaplace: the event was rejected")
)

// EventBridge takes the caller's VM events and tells the service of them, in the order in which they
// came. It never blocks who calls it: events wait in a bounded queue for one worker.
//
// With E = vm.VMEvent it is NovaCron's vm.VMManagerEventListener. NovaCron's VMs have no exported
// fields, so its events cannot be encoded as they are: the caller's function reads them.
type EventBridge[E any] struct {
	client  *Client
	read    func(E) (Event, bool)
	options EventBridgeOptions
	retry   RetryOptions

	mu     sync.Mutex
	queue  []Event
	closed bool
	stats  EventStats
	wake   chan struct{}

	stop    context.Context
	cancel  context.CancelFunc
	stopped chan struct{}
}

// EventStats is what a bridge has counted. Every event that it took is in one of the fields.
type EventStats struct {
	// Waiting in the queue or on their way; Sent and acknowledged.
	Waiting, Sent int
	// Dropped because the queue was full, or because the bridge was closed before they arrived;
	// Rejected by the service as making no sense.
	Dropped, Rejected int
}

// NewEventBridge starts a bridge. The function reads an event at once, on the caller's goroutine;
// events for which it returns false are not of interest.
func NewEventBridge[E any](client *Client, read func(E) (Event, bool), options EventBridgeOptions) *EventBridge[E] {
	if client == nil || read == nil {
		panic("novaplace: NewEventBridge needs a client and a function that reads events")
	}
	options.QueueSize = orDefault(options.QueueSize, 4096)
	options.BatchSize = orDefault(options.BatchSize, 128)
	options.SendTimeout = orDefault(options.SendTimeout, 5*time.Second)
	options.RetryDelay = orDefault(options.RetryDelay, 100*time.Millisecond)
	options.MaxRetryDelay = orDefault(options.MaxRetryDelay, 5*time.Second)
	bridge := &EventBridge[E]{
		client:  client,
		read:    read,
		options: options,
		retry:   RetryOptions{BaseDelay: options.RetryDelay, MaxDelay: options.MaxRetryDelay},
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	bridge.stop, bridge.cancel = context.WithCancel(context.Background())
	go bridge.work()
	return bridge
}

// OnVMEvent takes an event.
func (b *EventBridge[E]) OnVMEvent(event E) {
	read, wanted := b.read(event)
	if !wanted {
		return
	}
	b.mu.Lock()
	lost, reason := read, ErrBridgeClosed
	switch {
	case b.closed:
		b.stats.Dropped++
	case len(b.queue) < b.options.QueueSize:
		b.queue = append(b.queue, read)
		reason = nil
	default:
		lost, reason = b.queue[0], ErrQueueFull
		b.queue = append(b.queue[1:], read)
		b.stats.Dropped++
	}
	b.mu.Unlock()
	if reason != nil {
		b.tell(lost, reason)
	}
	b.nudge()
}

// Stats reads the counters.
func (b *EventBridge[E]) Stats() EventStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	stats := b.stats
	stats.Waiting += len(b.queue)
	return stats
}

// Close takes no more events and waits until those that wait have arrived, or the context ends.
// What has not arrived then is lost, and the error says how much it is.
func (b *EventBridge[E]) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.nudge()
	select {
	case <-b.stopped:
	case <-ctx.Done():
		b.cancel()
		<-b.stopped
	}
	b.cancel()
	if lost := b.discard(); lost > 0 {
		return fmt.Errorf("novaplace: %d events not delivered: %w", lost, context.Cause(ctx))
	}
	return nil
}

// discard gives up what is still queued.
func (b *EventBridge[E]) discard() int {
	b.mu.Lock()
	left := b.queue
	b.queue = nil
	b.stats.Dropped += len(left)
	b.mu.Unlock()
	for _, event := range left {
		b.tell(event, ErrBridgeClosed)
	}
	return len(left)
}

func (b *EventBridge[E]) work() {
	defer close(b.stopped)
	for b.stop.Err() == nil {
		batch, last := b.take()
		switch {
		case len(batch) > 0:
			b.deliver(batch)
		case last:
			return
		default:
			select {
			case <-b.wake:
			case <-b.stop.Done():
			}
		}
	}
}

// take removes the next batch; last means that there will be no more.
func (b *EventBridge[E]) take() (batch []Event, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := min(len(b.queue), b.options.BatchSize)
	batch = append(batch, b.queue[:size]...)
	b.queue = b.queue[size:]
	b.stats.Waiting += size
	return batch, b.closed
}

// deliver does not return before the batch has arrived, was rejected, or the bridge was stopped; in
// the last case it puts the batch back.
func (b *EventBridge[E]) deliver(batch []Event) {
	for attempt := 1; ; attempt++ {
		results, err := b.send(batch)
		switch {
		case err == nil:
			b.settle(batch, results)
			return
		case aboutTheEvents(err) && len(batch) == 1:
			b.settle(batch, []EventResult{{Outcome: OutcomeRefused, Message: err.Error()}})
			return
		case aboutTheEvents(err):
			// One of them is to blame; alone, the others arrive.
			for i := range batch {
				b.deliver(batch[i : i+1])
			}
			return
		}
		wait := b.retry.delay(attempt)
		var failure *APIError
		if errors.As(err, &failure) {
			wait = max(wait, min(failure.RetryAfter, time.Minute))
		}
		if !sleep(b.stop, wait) {
			b.putBack(batch)
			return
		}
	}
}

func (b *EventBridge[E]) send(batch []Event) ([]EventResult, error) {
	ctx, cancel := context.WithTimeout(b.stop, b.options.SendTimeout)
	defer cancel()
	return b.client.ReportEvents(ctx, batch...)
}

// aboutTheEvents reports whether sending the same again would fail the same way.
func aboutTheEvents(err error) bool {
	var failure *APIError
	if !errors.As(err, &failure) {
		return false
	}
	switch failure.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// settle counts a batch that the service has answered.
func (b *EventBridge[E]) settle(batch []Event, results []EventResult) {
	var rejected []int
	for i := range batch {
		if i < len(results) && results[i].Outcome == OutcomeRefused {
			rejected = append(rejected, i)
		}
	}
	b.mu.Lock()
	b.stats.Waiting -= len(batch)
	b.stats.Sent += len(batch) - len(rejected)
	b.stats.Rejected += len(rejected)
	b.mu.Unlock()
	for _, i := range rejected {
		b.tell(batch[i], fmt.Errorf("%w: %s", ErrEventRejected, results[i].Message))
	}
}

func (b *EventBridge[E]) putBack(batch []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Waiting -= len(batch)
	b.queue = append(append([]Event{}, batch...), b.queue...)
}

func (b *EventBridge[E]) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *EventBridge[E]) tell(event Event, reason error) {
	if b.options.OnLost != nil {
		b.options.OnLost(event, reason)
	}
}
