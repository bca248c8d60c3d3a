package novaplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTheDeadlineTravels(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{Timeout: 3 * time.Second})
	header := func(ctx context.Context) int {
		if err := client.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		all := stub.seen()
		left, err := strconv.Atoi(all[len(all)-1].header.Get(headerTimeout))
		if err != nil {
			t.Fatalf("%s: %v", headerTimeout, err)
		}
		return left
	}
	if left := header(withTimeout(t, 20*time.Second)); left <= 3000 || left > 20000 {
		t.Errorf("20 s left, the header says %d ms", left)
	}
	if left := header(context.Background()); left < 1 || left > 3000 {
		t.Errorf("no deadline, so the client's 3 s apply; the header says %d ms", left)
	}
}

func TestACallThatIsTooLateIsNotMade(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	if err := client.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if calls := len(stub.seen()); calls != 0 {
		t.Errorf("%d calls", calls)
	}
}

func TestHeadersSayWhoAsks(t *testing.T) {
	stub := newStub(t)
	tokens := 0
	client := stub.client(Options{Token: func(context.Context) (string, error) {
		tokens++
		return fmt.Sprintf("token-%d", tokens), nil
	}})
	ctx := context.Background()
	for _, ctx := range []context.Context{ctx, ctx, WithRequestID(ctx, "mine")} {
		if err := client.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	all := stub.seen()
	for i, request := range all {
		if got, want := request.header.Get("Authorization"), fmt.Sprintf("Bearer token-%d", i+1); got != want {
			t.Errorf("call %d: Authorization %q, want %q", i, got, want)
		}
		if got := request.header.Get("User-Agent"); got != "novaplace-go/"+Version {
			t.Errorf("User-Agent %q", got)
		}
	}
	first, second, third := all[0].header.Get(headerRequestID), all[1].header.Get(headerRequestID), all[2].header.Get(headerRequestID)
	if first == "" || first == second || third != "mine" {
		t.Errorf("request ids %q, %q, %q", first, second, third)
	}
}

func TestATokenThatCannotBeHadFailsTheCall(t *testing.T) {
	stub := newStub(t)
	gone := errors.New("vault is sealed")
	client := stub.client(Options{Token: func(context.Context) (string, error) { return "", gone }})
	if err := client.Ready(context.Background()); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	cases := map[string]struct {
		status     int
		body       string
		header     string
		code       string
		message    string
		is, isNot  error
		retryAfter time.Duration
	}{
		"NovaCron's form": {
			status: 409, body: `{"error":{"code":"INSUFFICIENT_CAPACITY","message":"no node has enough resources for the VM"}}`,
			code: CodeInsufficientCapacity, message: "no node has enough resources for the VM",
			is: ErrNoCapacity, isNot: ErrConflict,
		},
		"in NovaCron's envelope": {
			status: 404, body: `{"data":null,"error":{"code":"not_found","message":"node a is not registered"}}`,
			code: "not_found", message: "node a is not registered", is: ErrNotFound, isNot: ErrNoCapacity,
		},
		"a problem": {
			status: 409, body: `{"type":"urn:x","code":"concurrent_update","detail":"it is at 7"}`,
			code: "concurrent_update", message: "it is at 7", is: ErrConflict, isNot: ErrNoCapacity,
		},
		"plain text":   {status: 400, body: "bad\n", message: "bad", isNot: ErrConflict},
		"nothing":      {status: 412, is: ErrConflict},
		"a long page":  {status: 502, body: strings.Repeat("<p>é", 1000), message: strings.Repeat("<p>é", 40) + "..."},
		"a null error": {status: 403, body: `{"error":null}`, message: `{"error":null}`, is: ErrUnauthorized},
		"a text error": {status: 401, body: `{"error":"no"}`, message: `{"error":"no"}`, is: ErrUnauthorized},
		"with a wait":  {status: 429, header: "7", retryAfter: 7 * time.Second},
		"an odd wait":  {status: 429, header: "soon"},
		"a 5xx code is not a considered answer": {
			status: 503, body: `{"error":{"code":"PLACEMENT_UNAVAILABLE","message":"x"}}`,
			code: CodePlacementUnavailable, message: "x", isNot: ErrNoCapacity,
		},
	}
	for name, c := range cases {
		c := c
		t.Run(name, func(t *testing.T) {
			stub := newStub(t)
			stub.answering(func(w http.ResponseWriter, r *http.Request) {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.Header().Set("X-Request-ID", r.Header.Get("X-Request-ID"))
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err := stub.client(Options{Retry: RetryOptions{Attempts: 1}}).Schedule(WithRequestID(context.Background(), "q1"), "vm", ScheduleRequest{})
			var failure *APIError
			if !errors.As(err, &failure) {
				t.Fatalf("got %v", err)
			}
			want := APIError{c.status, c.code, c.message, c.retryAfter, "q1"}
			if *failure != want {
				t.Errorf("got  %+v\nwant %+v", *failure, want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if c.isNot != nil && errors.Is(err, c.isNot) {
				t.Errorf("%v is %v", err, c.isNot)
			}
		})
	}
}

func TestAWaitCanBeADate(t *testing.T) {
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	if wait := retryAfter("Thu, 02 Jan 2025 03:04:15 GMT", now); wait != 10*time.Second {
		t.Errorf("got %v", wait)
	}
	if wait := retryAfter("Thu, 02 Jan 2025 03:04:00 GMT", now); wait != 0 {
		t.Errorf("the past: got %v", wait)
	}
}

// failing answers the first few requests with a status.
func (s *stub) failingFirst(times int, status int) {
	var count atomic.Int64
	s.answering(func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1) <= int64(times) {
			w.WriteHeader(status)
			return
		}
		w.Header().Set(passOn, "yes")
	})
}

var quick = RetryOptions{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}

func TestOnlyIdempotentCallsAreRepeated(t *testing.T) {
	cases := map[string]struct {
		call  func(*Client) error
		calls int
	}{
		"reading":    {func(c *Client) error { return c.Ready(context.Background()) }, 3},
		"an event":   {func(c *Client) error { _, err := c.ReportEvents(context.Background(), Event{VMID: "a"}); return err }, 3},
		"scheduling": {func(c *Client) error { _, err := c.Schedule(context.Background(), "a", ScheduleRequest{}); return err }, 3},
		"placing":    {func(c *Client) error { _, err := c.PlaceVM(context.Background(), &PlacementRequest{}); return err }, 1},
		"a node":     {func(c *Client) error { return c.RegisterNode(context.Background(), NodeResourceInfo{}) }, 1},
		"a policy":   {func(c *Client) error { return c.DeactivatePolicy(context.Background(), "a") }, 1},
	}
	for name, c := range cases {
		stub := newStub(t)
		stub.failingFirst(2, 503)
		err := c.call(stub.client(Options{Retry: quick}))
		if calls := len(stub.seen()); calls != c.calls {
			t.Errorf("%s: %d calls, want %d", name, calls, c.calls)
		}
		var failure *APIError
		if errors.As(err, &failure) && failure.Status == 503 != (c.calls == 1) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRepeatsKeepTheRequestID(t *testing.T) {
	stub := newStub(t)
	stub.failingFirst(1, 500)
	if err := stub.client(Options{Retry: quick}).Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	all := stub.seen()
	if first, second := all[0].header.Get(headerRequestID), all[1].header.Get(headerRequestID); first != second {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestABadRequestIsNotRepeated(t *testing.T) {
	for _, status := range []int{400, 401, 404, 409, 422} {
		stub := newStub(t)
		stub.failingFirst(1, status)
		if err := stub.client(Options{Retry: quick}).Ready(context.Background()); err == nil || len(stub.seen()) != 1 {
			t.Errorf("%d: %v after %d calls", status, err, len(stub.seen()))
		}
	}
}

func TestARetryAfterIsHonoured(t *testing.T) {
	stub := newStub(t)
	var asked atomic.Int64
	stub.answering(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 2 {
			w.Header().Set(passOn, "yes")
			return
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(429)
	})
	client := stub.client(Options{Retry: quick})
	if err := client.Ready(withTimeout(t, 900*time.Millisecond)); err == nil || len(stub.seen()) != 1 {
		t.Errorf("a wait beyond the deadline: %d calls, %v", len(stub.seen()), err)
	}
	start := time.Now()
	if err := client.Ready(withTimeout(t, time.Minute)); err != nil || len(stub.seen()) != 3 {
		t.Errorf("a wait that there is time for: %d calls, %v", len(stub.seen())-1, err)
	}
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("came back after %v, asked for one second", waited)
	}
}

func TestTheRetryBudgetBoundsRepeats(t *testing.T) {
	stub := newStub(t)
	stub.failingFirst(1<<30, 503)
	retry := quick
	retry.BudgetBurst, retry.BudgetRatio = 4, 0.05
	client := stub.client(Options{Retry: retry, Breaker: BreakerOptions{Disabled: true}})
	const calls = 100
	for i := 0; i < calls; i++ {
		client.Ready(context.Background())
	}
	// Four were saved up, and a hundred calls earn five; the bucket was full for the first of them.
	stats := client.Stats()
	if stats.Requests != calls+stats.Retries || stats.Retries < 8 || stats.Retries > 9 {
		t.Errorf("%d requests, %d of them repeats", stats.Requests, stats.Retries)
	}
}

func TestDelaysGrowAndStayBelowTheirLimit(t *testing.T) {
	options := RetryOptions{BaseDelay: 10 * time.Millisecond, MaxDelay: 50 * time.Millisecond}
	highest := make([]time.Duration, 6)
	for attempts := 1; attempts < len(highest); attempts++ {
		for i := 0; i < 500; i++ {
			highest[attempts] = max(highest[attempts], options.delay(attempts))
		}
	}
	for attempts, limit := range []time.Duration{0, 10, 20, 40, 50, 50} {
		if limit *= time.Millisecond; highest[attempts] > limit || highest[attempts] < limit/2 {
			t.Errorf("after %d attempts: at most %v, want up to %v", attempts, highest[attempts], limit)
		}
	}
	if got := doubled(time.Hour, 1000, 1<<62); got != 1<<62 {
		t.Errorf("doubling overflows: %v", got)
	}
}

func TestAnswersHaveALimit(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"node_id":"%s"}`, strings.Repeat("a", 1000))
	})
	_, err := stub.client(Options{MaxResponseBytes: 1014}).Schedule(context.Background(), "a", ScheduleRequest{})
	if err != nil {
		t.Errorf("just within: %v", err)
	}
	_, err = stub.client(Options{MaxResponseBytes: 1013}).Schedule(context.Background(), "a", ScheduleRequest{})
	if !errors.Is(err, ErrResponseTooLarge) {
		t.Errorf("one too many: %v", err)
	}
}

func TestAnAnswerThatIsNotJSONIsAnError(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	if _, err := stub.client(Options{}).Schedule(context.Background(), "a", ScheduleRequest{}); err == nil {
		t.Error("no error")
	}
}

func TestARedirectIsAnErrorAndNotFollowed(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/ready", http.StatusTemporaryRedirect)
	})
	var failure *APIError
	if err := stub.client(Options{}).Ready(context.Background()); !errors.As(err, &failure) || failure.Status != 307 {
		t.Errorf("got %v", err)
	}
	if calls := len(stub.seen()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestBaseURLsAreChecked(t *testing.T) {
	for _, wrong := range []string{"", "localhost:8080", "ftp://a", "http://", "http://a b"} {
		if _, err := New(wrong, Options{}); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func TestIDsAreEscapedAndNeverEmpty(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	client.DeleteNode(context.Background(), "a/../b c?d")
	if path := stub.seen()[0].path; path != "/scheduler/nodes/a%2F..%2Fb%20c%3Fd" {
		t.Errorf("path %q", path)
	}
	if err := client.DeleteNode(context.Background(), ""); err == nil || len(stub.seen()) != 1 {
		t.Errorf("deleting no node in particular: %v", err)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	stub := newStub(t)
	client := stub.client(Options{})
	var connections sync.Map
	stub.answering(func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		w.Header().Set(passOn, "yes")
	})
	for i := 0; i < 20; i++ {
		client.Ready(context.Background())
	}
	count := 0
	connections.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("20 calls in a row took %d connections", count)
	}
}
