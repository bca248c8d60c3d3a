package novaplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What callers may want to tell apart with errors.Is. An [APIError] matches by its status and code.
var (
	// ErrCircuitOpen is returned without asking the service while it is known to be failing.
	ErrCircuitOpen = errors.New("novaplace: circuit open, the service has been failing")
	// ErrNoCapacity is the service's considered answer that no node can take the VM.
	ErrNoCapacity = errors.New("novaplace: no node can take the VM")
	// ErrNotFound means that the service has no such thing.
	ErrNotFound = errors.New("novaplace: not found")
	// ErrConflict means that the thing exists already, has changed since it was read, or, with
	// inventories, that the service is at another generation.
	ErrConflict = errors.New("novaplace: conflict")
	// ErrUnauthorized means that the token is missing, wrong, or not good enough.
	ErrUnauthorized = errors.New("novaplace: unauthorized")
	// ErrResponseTooLarge means that an answer was longer than [Options.MaxResponseBytes].
	ErrResponseTooLarge = errors.New("novaplace: response too large")
)

// Codes that the service puts into placement errors; they are those of NovaCron's VMError.
const (
	CodeInsufficientCapacity = "INSUFFICIENT_CAPACITY"
	CodePlacementUnavailable = "PLACEMENT_UNAVAILABLE"
)

// APIError is any answer of the service that is not a success.
type APIError struct {
	// Status is the HTTP status.
	Status int
	// Code is the service's stable name for the problem, empty if the answer had none.
	Code string
	// Message says what happened, in the service's words.
	Message string
	// RetryAfter is how long the service asks to be left alone, or zero.
	RetryAfter time.Duration
	// RequestID finds the request in the service's log.
	RequestID string
}

func (e *APIError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "novaplace: %d", e.Status)
	if e.Code != "" {
		text.WriteString(" " + e.Code)
	}
	if e.Message != "" {
		text.WriteString(": " + e.Message)
	}
	return text.String()
}

// Is makes an APIError match this package's sentinel errors.
func (e *APIError) Is(target error) bool {
	switch target {
	case ErrNoCapacity:
		return e.noCapacity()
	case ErrConflict:
		return (e.Status == http.StatusConflict || e.Status == http.StatusPreconditionFailed) && !e.noCapacity()
	case ErrNotFound:
		return e.Status == http.StatusNotFound
	case ErrUnauthorized:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	}
	return false
}

func (e *APIError) noCapacity() bool {
	known := e.Code == CodeInsufficientCapacity || e.Code == CodePlacementUnavailable
	return known && e.Status < http.StatusInternalServerError
}

// retryable reports whether the same request may well succeed in a moment.
func (e *APIError) retryable() bool {
	return e.Status == http.StatusTooManyRequests || e.brokenService()
}

// brokenService reports whether the answer tells of the service's health rather than of the request.
func (e *APIError) brokenService() bool {
	switch e.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// maxErrorText bounds what is kept of an answer that is not JSON, a proxy's HTML page for example.
const maxErrorText = 200

// readError makes an APIError of an answer, in NovaCron's form, as problem+json, or as plain text.
func readError(response *http.Response, body []byte) *APIError {
	failure := &APIError{
		Status:     response.StatusCode,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		RequestID:  response.Header.Get("X-Request-ID"),
	}
	var known struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &known) == nil {
		failure.Code, failure.Message = known.Error.Code, known.Error.Message
		if failure.Code == "" && failure.Message == "" {
			failure.Code, failure.Message = known.Code, known.Detail
		}
	}
	if failure.Code == "" && failure.Message == "" {
		text := strings.TrimSpace(string(body))
		if len(text) > maxErrorText {
			text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
		}
		failure.Message = text
	}
	return failure
}

// retryAfter reads both forms of the header; what it cannot read is no wish.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(header)); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 86_400)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
