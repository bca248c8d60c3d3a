package novaplace

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Policy is a policy document as the service keeps it.
type Policy struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	// Type is placement, migration, resource_allocation, maintenance or composite.
	Type    string `json:"type"`
	Version string `json:"version"`
	// Status is draft, active or disabled.
	Status string `json:"status"`
	// Priority is 0 unless the policy is active.
	Priority int `json:"priority"`
	// DSL is the document's text.
	DSL        string                     `json:"dsl,omitempty"`
	Rules      []PolicyRule               `json:"rules"`
	Parameters map[string]PolicyParameter `json:"parameters"`
	Target     string                     `json:"target_selector,omitempty"`
	Metadata   map[string]any             `json:"metadata"`
	CreatedAt  time.Time                  `json:"created_at"`
	UpdatedAt  time.Time                  `json:"updated_at"`
	CreatedBy  string                     `json:"created_by"`
	UpdatedBy  string                     `json:"updated_by"`
}

// PolicyRule is one rule: a condition, and what follows from it.
type PolicyRule struct {
	ID             string   `json:"id"`
	Name           string   `json:"name"`
	Description    string   `json:"description"`
	Priority       int      `json:"priority"`
	Weight         int      `json:"weight"`
	HardConstraint bool     `json:"hard_constraint"`
	When           string   `json:"when"`
	Then           []string `json:"then"`
}

// PolicyParameter is a number, text or switch that operators may turn.
type PolicyParameter struct {
	Name          string `json:"name"`
	Description   string `json:"description"`
	Type          string `json:"type"`
	DefaultValue  any    `json:"default_value"`
	CurrentValue  any    `json:"current_value"`
	MinValue      any    `json:"min_value,omitempty"`
	MaxValue      any    `json:"max_value,omitempty"`
	AllowedValues []any  `json:"allowed_values,omitempty"`
}

// PolicyDraft is a document to register or to put in another's place.
type PolicyDraft struct {
	// DSL is the document's text; Policy is the other way to give it, as a [Policy] or the like.
	DSL    string `json:"dsl,omitempty"`
	Policy any    `json:"policy,omitempty"`
	// Author registers, UpdatedBy updates; ChangeDescription ends up in the audit.
	Author            string `json:"author,omitempty"`
	UpdatedBy         string `json:"updated_by,omitempty"`
	ChangeDescription string `json:"change_description,omitempty"`
}

// PolicyConfiguration says how a policy is in force.
type PolicyConfiguration struct {
	Priority        int            `json:"priority"`
	ParameterValues map[string]any `json:"parameter_values"`
}

// PolicyValidation is what is wrong with a document, all of it at once.
type PolicyValidation struct {
	Valid    bool         `json:"valid"`
	Errors   []Diagnostic `json:"errors"`
	Warnings []Diagnostic `json:"warnings"`
}

// Diagnostic points at a place in a document.
type Diagnostic struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Hint    string `json:"hint,omitempty"`
}

// EvaluationRequest asks what the active policies say about a VM.
type EvaluationRequest struct {
	VM any `json:"vm"`
	// SourceNode is where the VM is now; for migrations only.
	SourceNode any `json:"source_node,omitempty"`
	// CandidateNodes, each an object with an id; without any, the synced inventory.
	CandidateNodes []any `json:"candidate_nodes,omitempty"`
	// Limit is how many nodes to answer at most, best first; zero is all that were sent, or the best
	// hundred of the inventory.
	Limit int `json:"limit,omitempty"`
}

// Evaluation is the nodes that are left, best first, and those that are not.
type Evaluation struct {
	Nodes []EvaluatedNode `json:"nodes"`
	// FeasibleCount is how many nodes are left, answered or not.
	FeasibleCount int `json:"feasible_count"`
	FilteredCount int `json:"filtered_count"`
	// Filtered is all removed nodes that were sent, or the first hundred of the inventory.
	Filtered []FilteredNode `json:"filtered"`
	// Errors are rules that did not fire on some nodes, because a part of them has no value there.
	Errors []RuleErrors `json:"errors"`
	// PolicyRevision counts the changes of policies and weights.
	PolicyRevision uint64 `json:"policy_revision"`
}

// RuleErrors is on how many nodes a rule, or without one the policy's target, had no value.
type RuleErrors struct {
	PolicyID string `json:"policy_id"`
	RuleID   string `json:"rule_id"`
	Nodes    int    `json:"nodes"`
}

// EvaluatedNode is a node that passed.
type EvaluatedNode struct {
	NodeID string `json:"node_id"`
	// Node is the node as it was sent; nil for nodes of the inventory.
	Node            map[string]any     `json:"node"`
	Score           float64            `json:"score"`
	ScoreComponents map[string]float64 `json:"score_components"`
}

// FilteredNode is a node that did not, with the rule that removed it.
type FilteredNode struct {
	NodeID   string `json:"node_id"`
	PolicyID string `json:"policy_id"`
	RuleID   string `json:"rule_id"`
	Reason   string `json:"reason"`
}

// FilterResult says whether one policy lets a node pass.
type FilterResult struct {
	NodeID   string `json:"node_id"`
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason"`
}

// ScoreResult is what one policy thinks of a node.
type ScoreResult struct {
	NodeID string  `json:"node_id"`
	Score  float64 `json:"score"`
}

// PolicyVersion is a document as it once was.
type PolicyVersion struct {
	PolicyID          string    `json:"policy_id"`
	Version           string    `json:"version"`
	Policy            *Policy   `json:"policy"`
	CreatedAt         time.Time `json:"created_at"`
	CreatedBy         string    `json:"created_by"`
	ChangeDescription string    `json:"change_description"`
}

// RollbackRequest names the version to go back to, who wants it and why.
type RollbackRequest struct {
	Version     string `json:"version"`
	User        string `json:"user,omitempty"`
	Description string `json:"description,omitempty"`
}

// PolicyAuditEntry is one thing that was done to a policy.
type PolicyAuditEntry struct {
	Timestamp   time.Time `json:"timestamp"`
	User        string    `json:"user"`
	PolicyID    string    `json:"policy_id"`
	Action      string    `json:"action"`
	FromVersion string    `json:"from_version,omitempty"`
	ToVersion   string    `json:"to_version,omitempty"`
	Description string    `json:"description"`
}

// RegisterPolicy makes a document known. It is not in force before it is activated.
func (c *Client) RegisterPolicy(ctx context.Context, draft PolicyDraft) (*Policy, error) {
	return answerOf[Policy](ctx, c, call{method: http.MethodPost, path: policiesPath, body: draft})
}

// Policies lists the documents of a type, or all of them.
func (c *Client) Policies(ctx context.Context, policyType string) ([]Policy, error) {
	request := call{method: http.MethodGet, path: policiesPath, idempotent: true}
	if policyType != "" {
		request.query = url.Values{"type": {policyType}}
	}
	return listOf[Policy](ctx, c, request)
}

// Policy reads one document.
func (c *Client) Policy(ctx context.Context, id string) (*Policy, error) {
	return answerOf[Policy](ctx, c, read(policyPath(id, "")))
}

// UpdatePolicy puts another document in its place, as a new version.
func (c *Client) UpdatePolicy(ctx context.Context, id string, draft PolicyDraft) (*Policy, error) {
	return answerOf[Policy](ctx, c, call{method: http.MethodPut, path: policyPath(id, ""), body: draft})
}

// DeletePolicy forgets a document and takes it out of force.
func (c *Client) DeletePolicy(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: policyPath(id, ""), idempotent: true}, nil)
}

// ActivatePolicy puts a document into force with the given parameters.
func (c *Client) ActivatePolicy(ctx context.Context, id string, configuration PolicyConfiguration) error {
	return c.do(ctx, call{method: http.MethodPost, path: policyPath(id, "/activate"), body: configuration}, nil)
}

// DeactivatePolicy takes a document out of force and keeps it.
func (c *Client) DeactivatePolicy(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodPost, path: policyPath(id, "/deactivate")}, nil)
}

// ValidatePolicy says what is wrong with a document and changes nothing.
func (c *Client) ValidatePolicy(ctx context.Context, dsl string) (*PolicyValidation, error) {
	return answerOf[PolicyValidation](ctx, c, ask(policiesPath+"/validate", PolicyDraft{DSL: dsl}))
}

// EvaluatePlacement asks which nodes the active placement policies leave, and in which order.
func (c *Client) EvaluatePlacement(ctx context.Context, request EvaluationRequest) (*Evaluation, error) {
	return answerOf[Evaluation](ctx, c, ask(policiesPath+"/evaluate/placement", request))
}

// EvaluateMigration asks the same of the migration policies.
func (c *Client) EvaluateMigration(ctx context.Context, request EvaluationRequest) (*Evaluation, error) {
	return answerOf[Evaluation](ctx, c, ask(policiesPath+"/evaluate/migration", request))
}

type workloadOverNodes struct {
	Workload any   `json:"workload"`
	Nodes    []any `json:"nodes"`
}

// FilterNodes asks one policy which of the nodes may take a workload; all nodes in one call.
func (c *Client) FilterNodes(ctx context.Context, policy string, workload any, nodes []any) ([]FilterResult, error) {
	var answer struct {
		Results []FilterResult `json:"results"`
	}
	body := workloadOverNodes{workload, orEmpty(nodes)}
	err := c.do(ctx, ask(policyPath(policy, "/filter"), body), &answer)
	return answer.Results, err
}

// ScoreNodes asks one policy how well the nodes suit a workload; all nodes in one call.
func (c *Client) ScoreNodes(ctx context.Context, policy string, workload any, nodes []any) ([]ScoreResult, error) {
	var answer struct {
		Results []ScoreResult `json:"results"`
	}
	body := workloadOverNodes{workload, orEmpty(nodes)}
	err := c.do(ctx, ask(policyPath(policy, "/score"), body), &answer)
	return answer.Results, err
}

// PolicyVersions lists a document's versions.
func (c *Client) PolicyVersions(ctx context.Context, id string) ([]PolicyVersion, error) {
	return listOf[PolicyVersion](ctx, c, read(policyPath(id, "/versions")))
}

// PolicyVersion reads one of them.
func (c *Client) PolicyVersion(ctx context.Context, id, version string) (*PolicyVersion, error) {
	return answerOf[PolicyVersion](ctx, c, read(pathTo(policiesPath+"/", id, "/versions/", version)))
}

// RollbackPolicy makes an old version the newest.
func (c *Client) RollbackPolicy(ctx context.Context, id string, request RollbackRequest) (*Policy, error) {
	return answerOf[Policy](ctx, c, call{method: http.MethodPost, path: policyPath(id, "/rollback"), body: request})
}

// PolicyAudit lists what was done to a document.
func (c *Client) PolicyAudit(ctx context.Context, id string) ([]PolicyAuditEntry, error) {
	return listOf[PolicyAuditEntry](ctx, c, read(policyPath(id, "/audit")))
}

// PolicyConflict is rules that work against each other.
type PolicyConflict struct {
	// Kind is removes_every_host, opposite_scores, duplicate_rule or priority_tie.
	Kind string `json:"kind"`
	// Certain is false where it depends on the VM whether the rules meet.
	Certain  bool     `json:"certain"`
	Policies []string `json:"policies"`
	Rules    []struct {
		Policy string `json:"policy"`
		Rule   string `json:"rule"`
	} `json:"rules"`
	Message string `json:"message"`
}

// PolicyConflicts lists rules of active policies that cannot both be meant.
func (c *Client) PolicyConflicts(ctx context.Context) ([]PolicyConflict, error) {
	return listOf[PolicyConflict](ctx, c, read(policiesPath+"/conflicts"))
}

const policiesPath = "/scheduler/policies"

func policyPath(id, rest string) string {
	return pathTo(policiesPath+"/", id, rest)
}

// read is a call that fetches something.
func read(path string) call {
	return call{method: http.MethodGet, path: path, idempotent: true}
}

// ask is a call that needs a body to say what it asks, and changes nothing.
func ask(path string, body any) call {
	return call{method: http.MethodPost, path: path, body: body, idempotent: true}
}

func answerOf[T any](ctx context.Context, c *Client, request call) (*T, error) {
	answer := new(T)
	if err := c.do(ctx, request, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

func listOf[T any](ctx context.Context, c *Client, request call) ([]T, error) {
	var list []T
	err := c.do(ctx, request, &list)
	return list, err
}
