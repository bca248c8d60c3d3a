package novaplace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// TestEveryCallGoesWhereTheContractSays makes each call once and looks at what it sends and reads.
func TestEveryCallGoesWhereTheContractSays(t *testing.T) {
	ctx := context.Background()
	vm, one := map[string]any{"id": "v"}, []any{map[string]any{"id": "n"}}
	// show makes a call's answer comparable.
	show := func(value any, err error) (string, error) { return fmt.Sprintf("%+v", value), err }
	cases := []struct {
		name, line, sent string
		answer           string
		call             func(*Client) (string, error)
		want             string
	}{
		{
			name: "register", line: "POST /scheduler/policies", sent: `{"dsl":"policy","author":"op"}`, answer: `{"id":"p","status":"draft"}`,
			call: func(c *Client) (string, error) {
				policy, err := c.RegisterPolicy(ctx, PolicyDraft{DSL: "policy", Author: "op"})
				return policy.ID + " " + policy.Status, err
			}, want: "p draft",
		},
		{
			name: "list by type", line: "GET /scheduler/policies?type=placement", answer: `[{"id":"p","rules":[{"id":"r","priority":7,"hard_constraint":true,"when":"true","then":["filter \"x\""]}]}]`,
			call: func(c *Client) (string, error) {
				list, err := c.Policies(ctx, "placement")
				return show(list[0].Rules, err)
			}, want: `[{ID:r Name: Description: Priority:7 Weight:0 HardConstraint:true When:true Then:[filter "x"]}]`,
		},
		{
			name: "list all", line: "GET /scheduler/policies", answer: `[]`,
			call: func(c *Client) (string, error) { return show(c.Policies(ctx, "")) }, want: "[]",
		},
		{
			name: "read", line: "GET /scheduler/policies/p", answer: `{"id":"p","parameters":{"max":{"type":"int","current_value":5}}}`,
			call: func(c *Client) (string, error) {
				policy, err := c.Policy(ctx, "p")
				return show(policy.Parameters["max"].CurrentValue, err)
			}, want: "5",
		},
		{
			name: "update", line: "PUT /scheduler/policies/p", sent: `{"dsl":"policy","updated_by":"op","change_description":"why"}`, answer: `{"version":"v2"}`,
			call: func(c *Client) (string, error) {
				policy, err := c.UpdatePolicy(ctx, "p", PolicyDraft{DSL: "policy", UpdatedBy: "op", ChangeDescription: "why"})
				return policy.Version, err
			}, want: "v2",
		},
		{
			name: "delete", line: "DELETE /scheduler/policies/p",
			call: func(c *Client) (string, error) { return "", c.DeletePolicy(ctx, "p") },
		},
		{
			name: "activate", line: "POST /scheduler/policies/p/activate", sent: `{"priority":3,"parameter_values":{"max":5}}`,
			call: func(c *Client) (string, error) {
				return "", c.ActivatePolicy(ctx, "p", PolicyConfiguration{Priority: 3, ParameterValues: map[string]any{"max": 5}})
			},
		},
		{
			name: "deactivate", line: "POST /scheduler/policies/p/deactivate",
			call: func(c *Client) (string, error) { return "", c.DeactivatePolicy(ctx, "p") },
		},
		{
			name: "validate", line: "POST /scheduler/policies/validate", sent: `{"dsl":"poli"}`,
			answer: `{"valid":false,"errors":[{"field":"name","code":"missing","message":"no name","line":2,"column":5}],"warnings":[]}`,
			call:   func(c *Client) (string, error) { return show(c.ValidatePolicy(ctx, "poli")) },
			want:   "&{Valid:false Errors:[{Field:name Code:missing Message:no name Line:2 Column:5 Hint:}] Warnings:[]}",
		},
		{
			name: "evaluate over the inventory", line: "POST /scheduler/policies/evaluate/placement", sent: `{"vm":{"id":"v"},"limit":3}`,
			answer: `{"nodes":[{"node_id":"n","score":12.5,"score_components":{"cpu":12.5}}],"feasible_count":9,"filtered_count":1,"filtered":[{"node_id":"m","policy_id":"p","rule_id":"r","reason":"x"}],"errors":[{"policy_id":"p","nodes":2}],"policy_revision":7}`,
			call: func(c *Client) (string, error) {
				return show(c.EvaluatePlacement(ctx, EvaluationRequest{VM: vm, Limit: 3}))
			},
			want: "&{Nodes:[{NodeID:n Node:map[] Score:12.5 ScoreComponents:map[cpu:12.5]}] FeasibleCount:9 FilteredCount:1 Filtered:[{NodeID:m PolicyID:p RuleID:r Reason:x}] Errors:[{PolicyID:p RuleID: Nodes:2}] PolicyRevision:7}",
		},
		{
			name: "evaluate a migration", line: "POST /scheduler/policies/evaluate/migration",
			sent: `{"vm":{"id":"v"},"source_node":{"id":"s"},"candidate_nodes":[{"id":"n"}]}`, answer: `{"nodes":[]}`,
			call: func(c *Client) (string, error) {
				return show(c.EvaluateMigration(ctx, EvaluationRequest{VM: vm, SourceNode: map[string]any{"id": "s"}, CandidateNodes: one}))
			}, want: "&{Nodes:[] FeasibleCount:0 FilteredCount:0 Filtered:[] Errors:[] PolicyRevision:0}",
		},
		{
			name: "filter", line: "POST /scheduler/policies/p/filter", sent: `{"workload":{"id":"v"},"nodes":[{"id":"n"}]}`,
			answer: `{"results":[{"node_id":"n","feasible":false,"reason":"x"}]}`,
			call:   func(c *Client) (string, error) { return show(c.FilterNodes(ctx, "p", vm, one)) }, want: "[{NodeID:n Feasible:false Reason:x}]",
		},
		{
			name: "score", line: "POST /scheduler/policies/p/score", sent: `{"workload":{"id":"v"},"nodes":[]}`,
			answer: `{"results":[{"node_id":"n","score":-3}]}`,
			call:   func(c *Client) (string, error) { return show(c.ScoreNodes(ctx, "p", vm, nil)) }, want: "[{NodeID:n Score:-3}]",
		},
		{
			name: "versions", line: "GET /scheduler/policies/p/versions", answer: `[{"policy_id":"p","version":"v1"}]`,
			call: func(c *Client) (string, error) {
				list, err := c.PolicyVersions(ctx, "p")
				return list[0].Version, err
			}, want: "v1",
		},
		{
			name: "one version", line: "GET /scheduler/policies/p/versions/v1", answer: `{"version":"v1","policy":{"dsl":"text"}}`,
			call: func(c *Client) (string, error) {
				version, err := c.PolicyVersion(ctx, "p", "v1")
				return version.Policy.DSL, err
			}, want: "text",
		},
		{
			name: "roll back", line: "POST /scheduler/policies/p/rollback", sent: `{"version":"v1","user":"op","description":"oops"}`, answer: `{"version":"v3"}`,
			call: func(c *Client) (string, error) {
				policy, err := c.RollbackPolicy(ctx, "p", RollbackRequest{"v1", "op", "oops"})
				return policy.Version, err
			}, want: "v3",
		},
		{
			name: "audit", line: "GET /scheduler/policies/p/audit", answer: `[{"timestamp":"2025-01-01T00:00:00Z","user":"op","action":"activate"}]`,
			call: func(c *Client) (string, error) {
				list, err := c.PolicyAudit(ctx, "p")
				return list[0].User + " " + list[0].Action, err
			}, want: "op activate",
		},
		{
			name: "conflicts", line: "GET /scheduler/policies/conflicts", answer: `[{"kind":"priority_tie","certain":true,"policies":["p","q"],"rules":[{"policy":"p","rule":"r"}],"message":"m"}]`,
			call: func(c *Client) (string, error) { return show(c.PolicyConflicts(ctx)) }, want: "[{Kind:priority_tie Certain:true Policies:[p q] Rules:[{Policy:p Rule:r}] Message:m}]",
		},
		{
			name: "simulate", line: "POST /scheduler/simulations", sent: `{"name":"s","vms":[],"nodes":[{"id":"n"}],"policy_ids":["p"]}`,
			answer: `{"id":"s1","summary":{"total_nodes":1}}`,
			call: func(c *Client) (string, error) {
				simulation, err := c.Simulate(ctx, SimulationRequest{Name: "s", Nodes: one, PolicyIDs: []string{"p"}})
				return show(simulation.Summary.TotalNodes, err)
			}, want: "1",
		},
		{
			name: "simulations", line: "GET /scheduler/simulations", answer: `[{"id":"s1"}]`,
			call: func(c *Client) (string, error) {
				list, err := c.Simulations(ctx)
				return list[0].ID, err
			}, want: "s1",
		},
		{
			name: "a simulation", line: "GET /scheduler/simulations/s1", answer: `{"id":"s1","results":[{"vm_id":"v","node_id":"n"}]}`,
			call: func(c *Client) (string, error) {
				simulation, err := c.Simulation(ctx, "s1")
				return simulation.Results[0].NodeID, err
			}, want: "n",
		},
		{
			name: "compare", line: "GET /scheduler/simulations/compare?a=s1&b=s2", answer: `{"better":"s2"}`,
			call: func(c *Client) (string, error) { return show(c.CompareSimulations(ctx, "s1", "s2")) }, want: "map[better:s2]",
		},
		{
			name: "nodes", line: "GET /scheduler/nodes", answer: `[{"node_id":"n","labels":null}]`,
			call: func(c *Client) (string, error) {
				list, err := c.Nodes(ctx)
				return list[0].NodeID, err
			}, want: "n",
		},
		{
			name: "a node", line: "GET /scheduler/nodes/n", answer: `{"node_id":"n","total_cpu":4}`,
			call: func(c *Client) (string, error) {
				node, err := c.Node(ctx, "n")
				return show(node.TotalCPU, err)
			}, want: "4",
		},
		{
			name: "register a node", line: "POST /scheduler/nodes",
			sent: `{"node_id":"n","total_cpu":0,"used_cpu":0,"total_memory_mb":0,"used_memory_mb":0,"total_disk_gb":0,"used_disk_gb":0,"cpu_usage_percent":0,"memory_usage_percent":0,"disk_usage_percent":0,"vm_count":0,"status":"available"}`,
			call: func(c *Client) (string, error) {
				return "", c.RegisterNode(ctx, NodeResourceInfo{NodeID: "n", Status: StatusAvailable})
			},
		},
		{
			name: "update a node", line: "PUT /scheduler/nodes/n",
			call: func(c *Client) (string, error) { return "", c.UpdateNode(ctx, node("n")) },
		},
		{
			name: "delete a node", line: "DELETE /scheduler/nodes/n",
			call: func(c *Client) (string, error) { return "", c.DeleteNode(ctx, "n") },
		},
	}
	for _, c := range cases {
		c := c
		t.Run(c.name, func(t *testing.T) {
			stub := newStub(t)
			stub.answering(func(w http.ResponseWriter, _ *http.Request) {
				if c.answer == "" {
					w.WriteHeader(204)
				}
				fmt.Fprint(w, c.answer)
			})
			got, err := c.call(stub.client(Options{}))
			if err != nil || got != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
			sent := stub.seen()[0]
			line := sent.method + " " + sent.path
			if sent.query != "" {
				line += "?" + sent.query
			}
			if line != c.line || (c.sent != "" && string(sent.body) != c.sent) {
				t.Errorf("sent %s %s\nwant %s %s", line, sent.body, c.line, c.sent)
			}
		})
	}
}

func TestWeightsAreSetOnlyOverTheOnesThatWereRead(t *testing.T) {
	stub := newStub(t)
	stub.answering(func(w http.ResponseWriter, r *http.Request) {
		if match := r.Header.Get("If-Match"); match != "" && match != `"7"` {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		w.Header().Set("ETag", `"7"`)
		fmt.Fprint(w, `{"fit":3}`)
	})
	client := stub.client(Options{})
	weights, err := client.Weights(context.Background())
	if err != nil || weights.Values["fit"] != 3 || weights.Tag != `"7"` {
		t.Fatalf("got %+v, %v", weights, err)
	}
	if _, err := client.SetWeights(context.Background(), *weights); err != nil {
		t.Error(err)
	}
	weights.Tag = `"6"`
	if _, err := client.SetWeights(context.Background(), *weights); !errors.Is(err, ErrConflict) {
		t.Errorf("over others' weights: %v", err)
	}
	if body := string(stub.seen()[1].body); body != `{"fit":3}` {
		t.Errorf("sent %s", body)
	}
}
