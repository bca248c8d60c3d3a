package novaplace

import (
	"math/bits"
	"sync"
	"time"
)

// BreakerOptions says when a client stops asking a failing service, and for how long.
type BreakerOptions struct {
	// Failures among the last Window calls open the circuit. Defaults: 5 of 10; Window is at most 64.
	Failures, Window int
	// OpenFor is how long nothing is asked before one call may try again. It doubles with every
	// trial that fails, up to MaxOpenFor. Defaults: 1 s and 30 s.
	OpenFor, MaxOpenFor time.Duration
	// Disabled lets every call through.
	Disabled bool
}

func (o BreakerOptions) withDefaults() BreakerOptions {
	o.Window = min(orDefault(o.Window, 10), 64)
	o.Failures = min(orDefault(o.Failures, 5), o.Window)
	o.OpenFor = orDefault(o.OpenFor, time.Second)
	o.MaxOpenFor = max(orDefault(o.MaxOpenFor, 30*time.Second), o.OpenFor)
	return o
}

// BreakerState is closed (calls pass), open (none does) or half-open (one is trying).
type BreakerState int

// The three states.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
)

func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	default:
		return "half-open"
	}
}

// outcome is what a finished call says about the service.
type outcome int

const (
	healthy outcome = iota
	failing
	// unknown: the caller gave up before there was anything to learn.
	unknown
)

// breaker keeps the last calls' outcomes as bits, newest lowest.
type breaker struct {
	options BreakerOptions
	now     func() time.Time

	mu      sync.Mutex
	state   BreakerState
	history uint64
	openFor time.Duration
	until   time.Time
	// era changes with the state, so that a call that began before cannot speak about now.
	era     int
	opened  int
	refused int
}

func newBreaker(options BreakerOptions, now func() time.Time) *breaker {
	options = options.withDefaults()
	return &breaker{options: options, now: now, openFor: options.OpenFor}
}

// enter asks for leave to make a call. The caller passes what it was given to leave.
func (b *breaker) enter() (era int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case BreakerOpen:
		if !b.now().Before(b.until) {
			b.become(BreakerHalfOpen)
			return b.era, nil
		}
	case BreakerClosed:
		return b.era, nil
	}
	b.refused++
	return 0, ErrCircuitOpen
}

// leave reports how a call went.
func (b *breaker) leave(era int, result outcome) {
	if b.options.Disabled {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if era != b.era {
		return
	}
	if b.state == BreakerHalfOpen {
		switch result {
		case healthy:
			b.openFor = b.options.OpenFor
			b.become(BreakerClosed)
		case failing:
			b.openFor = min(2*b.openFor, b.options.MaxOpenFor)
			b.open()
		case unknown:
			// The trial taught nothing: the next call is the trial.
			b.become(BreakerOpen)
		}
		return
	}
	switch result {
	case healthy:
		b.history <<= 1
	case failing:
		b.history = b.history<<1 | 1
	}
	b.history &= 1<<b.options.Window - 1
	if bits.OnesCount64(b.history) >= b.options.Failures {
		b.open()
	}
}

func (b *breaker) open() {
	b.until = b.now().Add(b.openFor)
	b.opened++
	b.become(BreakerOpen)
}

func (b *breaker) become(state BreakerState) {
	b.state = state
	b.history = 0
	b.era++
}

func (b *breaker) current() (state BreakerState, opened, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.opened, b.refused
}

// orDefault is value unless that is zero or below.
func orDefault[T ~int | ~int64 | ~float64](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
