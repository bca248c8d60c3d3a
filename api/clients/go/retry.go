package novaplace

import (
	"context"
	"math/rand"
	"sync"
	"time"
)

// RetryOptions bounds how often calls that may be repeated are repeated.
type RetryOptions struct {
	// Attempts a call makes at most, the first included. Default 3; 1 never repeats.
	Attempts int
	// BaseDelay doubles with every attempt up to MaxDelay; the wait is random between nothing and
	// that, so that clients that failed together do not come back together. Defaults: 20 ms, 1 s.
	BaseDelay, MaxDelay time.Duration
	// BudgetRatio is how many repeats each first attempt earns, and BudgetBurst how many can be
	// saved up: while everything fails, repeats add a tenth to the load and no more. Defaults: 0.1
	// and 10.
	BudgetRatio float64
	BudgetBurst int
}

func (o RetryOptions) withDefaults() RetryOptions {
	o.Attempts = orDefault(o.Attempts, 3)
	o.BaseDelay = orDefault(o.BaseDelay, 20*time.Millisecond)
	o.MaxDelay = orDefault(o.MaxDelay, time.Second)
	o.BudgetRatio = orDefault(o.BudgetRatio, 0.1)
	o.BudgetBurst = orDefault(o.BudgetBurst, 10)
	return o
}

// delay draws the wait after so many attempts.
func (o RetryOptions) delay(attempts int) time.Duration {
	return time.Duration(rand.Int63n(int64(doubled(o.BaseDelay, attempts-1, o.MaxDelay)) + 1))
}

// doubled doubles a duration so often, up to a limit.
func doubled(base time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && base < limit; times-- {
		base += min(base, limit-base)
	}
	return min(base, limit)
}

// budget is a token bucket that first attempts fill and repeats empty.
type budget struct {
	mu            sync.Mutex
	tokens, burst float64
	ratio         float64
}

func newBudget(options RetryOptions) *budget {
	burst := float64(options.BudgetBurst)
	return &budget{tokens: burst, burst: burst, ratio: options.BudgetRatio}
}

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.ratio, b.burst)
}

func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// sleep waits, or says no at once if the context would end first.
func sleep(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
