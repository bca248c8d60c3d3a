package novaplace

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// clock is a time that tests turn.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// breakerWith makes a breaker that opens at 3 failures among 5 calls, for a second at first.
func breakerWith() (*breaker, *clock) {
	clock := &clock{time.Unix(1000, 0)}
	options := BreakerOptions{Failures: 3, Window: 5, OpenFor: time.Second, MaxOpenFor: 3 * time.Second}
	return newBreaker(options, func() time.Time { return clock.now }), clock
}

// play lets calls with these outcomes through: h for healthy, f for failing, u for unknown; x is a
// call that must be refused.
func play(t *testing.T, b *breaker, outcomes string) {
	t.Helper()
	for i, letter := range outcomes {
		era, err := b.enter()
		if refused := err != nil; refused != (letter == 'x') {
			t.Fatalf("call %d of %q: %v", i, outcomes, err)
		}
		switch letter {
		case 'h':
			b.leave(era, healthy)
		case 'f':
			b.leave(era, failing)
		case 'u':
			b.leave(era, unknown)
		}
	}
}

func TestTheBreakerOpensByTheShareOfFailures(t *testing.T) {
	for outcomes, want := range map[string]BreakerState{
		"fff":        BreakerOpen,
		"fhfhf":      BreakerOpen,
		"fhhhhff":    BreakerClosed,
		"ffhhhhff":   BreakerClosed,
		"ffuuuuuuuu": BreakerClosed,
		"ffuuuuuuuf": BreakerOpen,
	} {
		b, _ := breakerWith()
		play(t, b, outcomes)
		if state, _, _ := b.current(); state != want {
			t.Errorf("%s: %v, want %v", outcomes, state, want)
		}
	}
}

func TestAnOpenBreakerLetsOneTrialThrough(t *testing.T) {
	b, clock := breakerWith()
	play(t, b, "fffxx")
	clock.pass(999 * time.Millisecond)
	play(t, b, "x")
	clock.pass(time.Millisecond)
	trial, err := b.enter()
	if err != nil {
		t.Fatal(err)
	}
	play(t, b, "xx")
	b.leave(trial, healthy)
	play(t, b, "hhhffh")
	if state, opened, refused := b.current(); state != BreakerClosed || opened != 1 || refused != 5 {
		t.Errorf("%v, opened %d times, refused %d", state, opened, refused)
	}
}

func TestTrialsThatFailWaitLonger(t *testing.T) {
	b, clock := breakerWith()
	play(t, b, "fff")
	for _, wait := range []time.Duration{1, 2, 3, 3} {
		clock.pass(wait*time.Second - time.Millisecond)
		play(t, b, "x")
		clock.pass(time.Millisecond)
		play(t, b, "f")
	}
	clock.pass(3 * time.Second)
	play(t, b, "hfff")
	clock.pass(time.Second)
	play(t, b, "h")
}

func TestATrialThatTeachesNothingIsRepeated(t *testing.T) {
	b, clock := breakerWith()
	play(t, b, "fff")
	clock.pass(time.Second)
	play(t, b, "uuh")
}

func TestACallFromBeforeSaysNothingAboutNow(t *testing.T) {
	b, clock := breakerWith()
	late, _ := b.enter()
	play(t, b, "fff")
	clock.pass(time.Second)
	trial, _ := b.enter()
	b.leave(late, healthy)
	if state, _, _ := b.current(); state != BreakerHalfOpen {
		t.Fatalf("a late answer made it %v", state)
	}
	b.leave(trial, failing)
	if state, _, _ := b.current(); state != BreakerOpen {
		t.Errorf("%v", state)
	}
}

func TestAClientStopsAskingAFailingService(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{
		Retry:   RetryOptions{Attempts: 1},
		Breaker: BreakerOptions{Failures: 3, Window: 4, OpenFor: 20 * time.Millisecond},
	})
	stub.failingFirst(3, 500)
	for i := 0; i < 3; i++ {
		client.Ready(context.Background())
	}
	if err := client.Ready(context.Background()); !errors.Is(err, ErrCircuitOpen) || len(stub.seen()) != 3 {
		t.Fatalf("got %v after %d calls", err, len(stub.seen()))
	}
	eventually(t, "a trial closes the circuit", func() bool { return client.Ready(context.Background()) == nil })
	if stats := client.Stats(); stats.Breaker != BreakerClosed || stats.Opened != 1 || stats.Refused == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestRefusalsAndGivingUpDoNotOpenTheCircuit(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{Breaker: BreakerOptions{Failures: 1}, Retry: RetryOptions{Attempts: 1}})
	for _, status := range []int{400, 401, 404, 409, 429} {
		stub.failingFirst(1, status)
		client.Ready(context.Background())
	}
	released := make(chan struct{})
	stub.answering(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-released:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	if err := client.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if state := client.Stats().Breaker; state != BreakerClosed {
		t.Fatalf("%v", state)
	}
	client.Ready(withTimeout(t, 100*time.Millisecond))
	close(released)
	if state := client.Stats().Breaker; state != BreakerOpen {
		t.Errorf("a timeout tells of the service, but the circuit is %v", state)
	}
}
