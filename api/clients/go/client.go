package novaplace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Version is sent in the User-Agent header.
const Version = "0.1.0"

const (
	headerTimeout   = "X-Request-Timeout-Ms"
	headerRequestID = "X-Request-ID"
	// maxErrorBytes of a failed answer are read; no error needs more.
	maxErrorBytes = 64 << 10
)

// Options of a [Client]. The zero value is ready to use.
type Options struct {
	// Token gives the bearer token of each request, so that it can change while the client lives.
	Token func(context.Context) (string, error)
	// UserAgent replaces the default, which names this package and its version.
	UserAgent string
	// HTTPClient replaces the client's own, whose transport keeps connections to the one service.
	HTTPClient *http.Client
	// Timeout bounds calls whose context has no deadline. Default 10 s.
	Timeout time.Duration
	// MaxResponseBytes bounds what is read of an answer. Default 64 MiB.
	MaxResponseBytes int64
	Retry            RetryOptions
	Breaker          BreakerOptions
}

// Client calls the service. It is safe for concurrent use, and should be shared: connections,
// breaker and retry budget belong to it.
type Client struct {
	base      *url.URL
	http      *http.Client
	token     func(context.Context) (string, error)
	userAgent string
	timeout   time.Duration
	maxBytes  int64
	retry     RetryOptions
	budget    *budget
	breaker   *breaker
	idPrefix  string
	idCount   atomic.Uint64
	requests  atomic.Uint64
	retries   atomic.Uint64
}

// New makes a client of the service at baseURL, for example http://127.0.0.1:8080.
func New(baseURL string, options Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(baseURL, "/"))
	if err != nil {
		return nil, fmt.Errorf("novaplace: base URL: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("novaplace: base URL %q: want http://host:port or https://host:port", baseURL)
	}
	retry := options.Retry.withDefaults()
	client := &Client{
		base:      base,
		http:      options.HTTPClient,
		token:     options.Token,
		userAgent: options.UserAgent,
		timeout:   orDefault(options.Timeout, 10*time.Second),
		maxBytes:  orDefault(options.MaxResponseBytes, 64<<20),
		retry:     retry,
		budget:    newBudget(retry),
		breaker:   newBreaker(options.Breaker, time.Now),
		idPrefix:  strconv.FormatUint(rand.Uint64(), 36),
	}
	if client.http == nil {
		client.http = &http.Client{Transport: newTransport(), CheckRedirect: noRedirects}
	}
	if client.userAgent == "" {
		client.userAgent = "novaplace-go/" + Version
	}
	return client, nil
}

// newTransport keeps enough idle connections to one host that a burst of placements does not pay
// for handshakes, and finds a dead peer within seconds.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 2 * time.Second,
		MaxIdleConns:        128,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
		// The service is near; packing small answers costs more time than it saves.
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
	}
}

// noRedirects: the service never redirects, and a token must not follow where others point.
func noRedirects(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}

// Close lets idle connections go. Calls under way are not disturbed.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
}

// Stats is what a client has counted.
type Stats struct {
	// Requests that went out, repeats included, and how many of them were repeats.
	Requests, Retries uint64
	// Breaker is its state; Opened how often it opened; Refused how many calls it turned away.
	Breaker         BreakerState
	Opened, Refused int
}

// Stats reads the counters.
func (c *Client) Stats() Stats {
	state, opened, refused := c.breaker.current()
	return Stats{c.requests.Load(), c.retries.Load(), state, opened, refused}
}

type contextKey int

const requestIDKey contextKey = 0

// WithRequestID gives the calls made with the context an X-Request-ID. Others get one of their own.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey, id)
}

func (c *Client) requestID(ctx context.Context) string {
	if id, ok := ctx.Value(requestIDKey).(string); ok && id != "" {
		return id
	}
	return c.idPrefix + "-" + strconv.FormatUint(c.idCount.Add(1), 36)
}

// call is one request to make.
type call struct {
	method string
	// path is escaped already.
	path  string
	query url.Values
	body  any
	// idempotent calls may be repeated after a failure that leaves open whether they were carried out.
	idempotent bool
	ifMatch    string
	// etag, if given, takes the answer's.
	etag *string
}

// do makes a call and decodes a successful answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, call call, out any) error {
	if call.path == "" {
		return errors.New("novaplace: the id is empty")
	}
	if err := c.attempts(ctx, call, out); err != nil {
		return fmt.Errorf("%s %s: %w", call.method, call.path, err)
	}
	return nil
}

func (c *Client) attempts(ctx context.Context, call call, out any) error {
	var body []byte
	if call.body != nil {
		var err error
		if body, err = json.Marshal(call.body); err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	id := c.requestID(ctx)
	c.budget.earn()
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, call, id, body, out)
		if err == nil || !call.idempotent || attempt >= c.retry.Attempts || !worthRepeating(ctx, err) {
			return err
		}
		wait := c.retry.delay(attempt)
		var failure *APIError
		if errors.As(err, &failure) {
			wait = max(wait, failure.RetryAfter)
		}
		if !c.budget.spend() || !sleep(ctx, wait) {
			return err
		}
		c.retries.Add(1)
	}
}

// worthRepeating reports whether the call failed for a reason that may have passed in a moment.
func worthRepeating(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, ErrCircuitOpen) {
		return false
	}
	var failure *APIError
	if errors.As(err, &failure) {
		return failure.retryable()
	}
	var transport *url.Error
	return errors.As(err, &transport)
}

func (c *Client) attempt(ctx context.Context, call call, id string, body []byte, out any) error {
	request, err := c.newRequest(ctx, call, id, body)
	if err != nil {
		return err
	}
	era, err := c.breaker.enter()
	if err != nil {
		return err
	}
	c.requests.Add(1)
	err = c.exchange(request, call, out)
	c.breaker.leave(era, judge(ctx, err))
	return err
}

// judge says what an attempt tells about the service.
func judge(ctx context.Context, err error) outcome {
	var failure *APIError
	switch {
	case err == nil:
		return healthy
	case errors.As(err, &failure):
		if failure.brokenService() {
			return failing
		}
		return healthy
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, ErrResponseTooLarge):
		return unknown
	default:
		return failing
	}
}

func (c *Client) newRequest(ctx context.Context, call call, id string, body []byte) (*http.Request, error) {
	target := c.base.String() + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		request.Body, request.GetBody = http.NoBody, nil
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.userAgent)
	request.Header.Set(headerRequestID, id)
	if call.ifMatch != "" {
		request.Header.Set("If-Match", call.ifMatch)
	}
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("getting a token: %w", err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, context.DeadlineExceeded
		}
		request.Header.Set(headerTimeout, strconv.FormatInt(max(left.Milliseconds(), 1), 10))
	}
	return request, nil
}

// exchange sends one request and reads its answer.
func (c *Client) exchange(request *http.Request, call call, out any) error {
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
		return readError(response, body)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, c.maxBytes+1))
	if err != nil {
		return &url.Error{Op: "read", URL: request.URL.Redacted(), Err: err}
	}
	if int64(len(body)) > c.maxBytes {
		return fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, c.maxBytes)
	}
	if call.etag != nil {
		*call.etag = response.Header.Get("ETag")
	}
	if out == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decoding the answer: %w", err)
	}
	return nil
}

// Ready is nil when the service takes requests.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/ready", idempotent: true}, nil)
}

// pathTo joins a path: the even parts are ours, the odd ones are ids of the caller's. Without an id
// there is no path: it would lead to the collection.
func pathTo(parts ...string) string {
	for i := 1; i < len(parts); i += 2 {
		if parts[i] == "" {
			return ""
		}
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "")
}
