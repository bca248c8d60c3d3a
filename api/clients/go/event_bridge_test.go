package novaplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// vmEvent stands for the caller's event, whose VM cannot be encoded.
type vmEvent struct {
	kind string
	vm   struct{ id string }
	at   time.Time
}

func eventFor(id string) vmEvent {
	event := vmEvent{kind: "created", at: time.Unix(1_700_000_000, 5).UTC()}
	event.vm.id = id
	return event
}

func readEvent(event vmEvent) (Event, bool) {
	return Event{
		Type: event.kind, VMID: event.vm.id, NodeID: "n1", Timestamp: event.at, State: "running",
		Config: VMConfig{CPUShares: 1024},
	}, event.kind != "snapshot"
}

var patient = EventBridgeOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}

func (s *stub) eventIDs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, event := range s.events {
		ids = append(ids, event.VMID)
	}
	return strings.Join(ids, " ")
}

func closeBridge[E any](t *testing.T, bridge *EventBridge[E]) {
	t.Helper()
	if err := bridge.Close(withTimeout(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestEventsArriveInOrderAndInBatches(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	gate := make(chan struct{})
	stub.answering(func(w http.ResponseWriter, _ *http.Request) { <-gate; w.Header().Set(passOn, "yes") })
	options := patient
	options.BatchSize = 10
	bridge := NewEventBridge(stub.client(Options{}), readEvent, options)
	var want []string
	for i := 0; i < 41; i++ {
		id := fmt.Sprintf("vm%d", i)
		want = append(want, id)
		bridge.OnVMEvent(eventFor(id))
		if i == 0 {
			eventually(t, "the first is on its way", func() bool { return len(stub.seen()) == 1 })
		}
	}
	ignored := eventFor("x")
	ignored.kind = "snapshot"
	bridge.OnVMEvent(ignored)
	close(gate)
	closeBridge(t, bridge)
	if got := stub.eventIDs(); got != strings.Join(want, " ") {
		t.Errorf("arrived: %s", got)
	}
	if calls := len(stub.seen()); calls != 5 {
		t.Errorf("%d calls for one event and four batches of ten", calls)
	}
	if got := bridge.Stats(); got != (EventStats{Sent: 41}) {
		t.Errorf("%+v", got)
	}
}

func TestAnEventCarriesWhatTheVMSays(t *testing.T) {
	stub := newStub(t)
	bridge := NewEventBridge(stub.client(Options{}), readEvent, patient)
	bridge.OnVMEvent(eventFor("a"))
	closeBridge(t, bridge)
	body := string(stub.seen()[0].body)
	for _, part := range []string{
		`"type":"created"`, `"vm_id":"a"`, `"node_id":"n1"`, `"state":"running"`, `"cpu_shares":1024`,
		`"timestamp":"2023-11-14T22:13:20.000000005Z"`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
}

func TestAFullQueueDropsTheOldest(t *testing.T) {
	stub := newStub(t)
	gate := make(chan struct{})
	stub.answering(func(w http.ResponseWriter, _ *http.Request) { <-gate; w.Header().Set(passOn, "yes") })
	var lost []string
	options := patient
	options.QueueSize = 3
	options.OnLost = func(event Event, reason error) {
		if !errors.Is(reason, ErrQueueFull) {
			t.Errorf("%s was lost: %v", event.VMID, reason)
		}
		lost = append(lost, event.VMID)
	}
	bridge := NewEventBridge(stub.client(Options{}), readEvent, options)
	bridge.OnVMEvent(eventFor("0"))
	eventually(t, "the first is on its way", func() bool { return len(stub.seen()) == 1 })
	for i := 1; i <= 6; i++ {
		bridge.OnVMEvent(eventFor(fmt.Sprint(i)))
	}
	if got := bridge.Stats(); got != (EventStats{Waiting: 4, Dropped: 3}) {
		t.Errorf("%+v", got)
	}
	close(gate)
	closeBridge(t, bridge)
	if got := stub.eventIDs(); got != "0 4 5 6" || strings.Join(lost, " ") != "1 2 3" {
		t.Errorf("arrived %s, lost %v", got, lost)
	}
	if got := bridge.Stats(); got != (EventStats{Sent: 4, Dropped: 3}) {
		t.Errorf("%+v", got)
	}
}

func TestEventsAreSentUntilTheyArrive(t *testing.T) {
	for _, status := range []int{500, 503, 429, 404, 401} {
		stub := newStub(t)
		stub.failingFirst(7, status)
		client := stub.client(Options{Retry: quick, Breaker: BreakerOptions{OpenFor: time.Millisecond, MaxOpenFor: time.Millisecond}})
		bridge := NewEventBridge(client, readEvent, patient)
		bridge.OnVMEvent(eventFor("a"))
		closeBridge(t, bridge)
		if got := stub.eventIDs(); got != "a" {
			t.Errorf("%d: arrived %q", status, got)
		}
	}
}

// A lost answer makes the same event arrive twice; that must be the very same event, so that the
// service can tell.
func TestADuplicateIsTheSameEvent(t *testing.T) {
	stub := newStub(t)
	var count atomic.Int64
	stub.answering(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set(passOn, "yes")
	})
	bridge := NewEventBridge(stub.client(Options{Retry: quick}), readEvent, patient)
	bridge.OnVMEvent(eventFor("a"))
	closeBridge(t, bridge)
	all := stub.seen()
	if len(all) != 2 || string(all[0].body) != string(all[1].body) {
		t.Errorf("%d calls; %s, then %s", len(all), all[0].body, all[len(all)-1].body)
	}
}

func TestOneBadEventDoesNotHoldUpTheOthers(t *testing.T) {
	// The service refuses one of a batch, or the batch because of one.
	for _, bad := range []string{"", "poison"} {
		stub := newStub(t)
		gate := make(chan struct{})
		stub.answering(func(w http.ResponseWriter, _ *http.Request) { <-gate; w.Header().Set(passOn, "yes") })
		var lost error
		options := patient
		options.OnLost = func(_ Event, reason error) { lost = reason }
		bridge := NewEventBridge(stub.client(Options{}), readEvent, options)
		bridge.OnVMEvent(eventFor("a"))
		eventually(t, "the first is on its way", func() bool { return len(stub.seen()) == 1 })
		for _, id := range []string{"b", bad, "c"} {
			bridge.OnVMEvent(eventFor(id))
		}
		close(gate)
		closeBridge(t, bridge)
		if got := stub.eventIDs(); got != "a b c" {
			t.Errorf("%q: arrived %s", bad, got)
		}
		if got := bridge.Stats(); got != (EventStats{Sent: 3, Rejected: 1}) || !errors.Is(lost, ErrEventRejected) {
			t.Errorf("%q: %+v, %v", bad, got, lost)
		}
	}
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	stub.failingFirst(1<<30, 500)
	var lost atomic.Int64
	options := patient
	options.OnLost = func(Event, error) { lost.Add(1) }
	client := stub.client(Options{Retry: quick})
	bridge := NewEventBridge(client, readEvent, options)
	for i := 0; i < 5; i++ {
		bridge.OnVMEvent(eventFor(fmt.Sprint(i)))
	}
	err := bridge.Close(withTimeout(t, 30*time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "5 events") {
		t.Errorf("got %v", err)
	}
	bridge.OnVMEvent(eventFor("late"))
	if got := bridge.Stats(); got != (EventStats{Dropped: 6}) || lost.Load() != 6 {
		t.Errorf("%+v, told of %d", got, lost.Load())
	}
	if err := bridge.Close(context.Background()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestManyMayCallTheBridgeAtOnce(t *testing.T) {
	noLeaks(t)
	stub := newStub(t)
	bridge := NewEventBridge(stub.client(Options{}), readEvent, patient)
	var callers sync.WaitGroup
	for i := 0; i < 20; i++ {
		i := i
		callers.Add(1)
		go func() {
			defer callers.Done()
			for j := 0; j < 50; j++ {
				bridge.OnVMEvent(eventFor(fmt.Sprintf("%d-%d", i, j)))
			}
		}()
	}
	callers.Wait()
	closeBridge(t, bridge)
	if got := bridge.Stats(); got != (EventStats{Sent: 1000}) || len(strings.Fields(stub.eventIDs())) != 1000 {
		t.Errorf("%+v", got)
	}
}
