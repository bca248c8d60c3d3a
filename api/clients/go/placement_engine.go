package novaplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

// PlacementEngine has the methods of NovaCron's orchestration/placement.PlacementEngine over the
// caller's own types: a request, a decision, a node, a score, and the name of an algorithm. With
// NovaCron's types it is that interface. The types are encoded as JSON as they are, so they need
// NovaCron's JSON keys and nothing else; a type that differs converts itself in MarshalJSON and
// UnmarshalJSON.
type PlacementEngine[Request, Decision, NodeType, Score any, Algorithm ~string] struct {
	client    *Client
	algorithm atomic.Value
}

// NewPlacementEngine makes an engine that asks the service. The algorithm can be changed later.
func NewPlacementEngine[Request, Decision, NodeType, Score any, Algorithm ~string](
	client *Client, algorithm Algorithm,
) *PlacementEngine[Request, Decision, NodeType, Score, Algorithm] {
	engine := &PlacementEngine[Request, Decision, NodeType, Score, Algorithm]{client: client}
	engine.SetAlgorithm(algorithm)
	return engine
}

// The texts of the errors that NovaCron's callers know.
var (
	errNilRequest      = errors.New("placement request is nil")
	errNoNodes         = errors.New("no available nodes found")
	errNoFeasibleNodes = errors.New("no feasible nodes found for VM placement")
)

// PlaceVM determines the best node for a VM. When the service finds none, the error has NovaCron's
// text and is [ErrNoCapacity]; any other error is as [Client] made it.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) PlaceVM(
	ctx context.Context, request *Request,
) (*Decision, error) {
	body, err := e.encode(request)
	if err != nil {
		return nil, err
	}
	decision := new(Decision)
	if err := e.client.placeVM(ctx, body, decision); err != nil {
		return nil, worded(err)
	}
	return decision, nil
}

// EvaluateNodes scores the given nodes for a VM.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) EvaluateNodes(
	ctx context.Context, request *Request, nodes []*NodeType,
) ([]*Score, error) {
	body, err := e.encode(request)
	if err != nil {
		return nil, err
	}
	var scores []*Score
	if err := e.client.evaluateNodes(ctx, body, orEmpty(nodes), &scores); err != nil {
		return nil, worded(err)
	}
	return scores, nil
}

// GetAlgorithm returns the algorithm that was set last.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) GetAlgorithm() Algorithm {
	return e.algorithm.Load().(Algorithm)
}

// SetAlgorithm changes how requests that name no strategy are decided: bin_packing as consolidated,
// load_balancing as balanced, anything else as the service's policy says.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) SetAlgorithm(algorithm Algorithm) {
	e.algorithm.Store(algorithm)
}

// ValidateConstraints finds constraints that cannot mean anything. It asks nobody.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) ValidateConstraints(
	_ context.Context, request *Request,
) error {
	if request == nil {
		return errNilRequest
	}
	encoded, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	return checkConstraints(encoded)
}

// encode validates a request and writes it with a strategy.
func (e *PlacementEngine[Request, Decision, NodeType, Score, Algorithm]) encode(request *Request) (json.RawMessage, error) {
	if request == nil {
		return nil, errNilRequest
	}
	encoded, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	if err := checkConstraints(encoded); err != nil {
		return nil, fmt.Errorf("constraint validation failed: %w", err)
	}
	return withStrategy(encoded, strategyOf(string(e.GetAlgorithm())))
}

func checkConstraints(request []byte) error {
	var seen struct {
		Constraints []struct {
			Type       string                     `json:"type"`
			Parameters map[string]json.RawMessage `json:"parameters"`
		} `json:"constraints"`
	}
	if err := json.Unmarshal(request, &seen); err != nil {
		return fmt.Errorf("reading the constraints: %w", err)
	}
	names := map[string]string{
		"resource_limit": "resource limit", "affinity": "affinity", "anti_affinity": "anti-affinity",
	}
	for _, constraint := range seen.Constraints {
		if name, needs := names[constraint.Type]; needs && constraint.Parameters == nil {
			return fmt.Errorf("invalid constraint %s: %s constraint missing parameters", constraint.Type, name)
		}
	}
	return nil
}

func strategyOf(algorithm string) string {
	switch algorithm {
	case "bin_packing":
		return "consolidated"
	case "load_balancing":
		return "balanced"
	}
	return ""
}

// withStrategy sets the strategy of a request that has none.
func withStrategy(request []byte, strategy string) (json.RawMessage, error) {
	if strategy == "" {
		return request, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if given, ok := fields["strategy"]; ok && string(given) != `""` && string(given) != "null" {
		return request, nil
	}
	fields["strategy"] = json.RawMessage(`"` + strategy + `"`)
	return json.Marshal(fields)
}

// wordedError reads as NovaCron's callers expect and is still the error of the service.
type wordedError struct{ text, cause error }

func (e *wordedError) Error() string   { return e.text.Error() }
func (e *wordedError) Unwrap() []error { return []error{e.text, e.cause} }

func worded(err error) error {
	var failure *APIError
	if !errors.As(err, &failure) || !failure.noCapacity() {
		return err
	}
	if failure.Code == CodePlacementUnavailable {
		return &wordedError{errNoNodes, err}
	}
	return &wordedError{errNoFeasibleNodes, err}
}
