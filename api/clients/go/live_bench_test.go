package novaplace

import (
	"context"
	"fmt"
	"sort"
	"testing"
	"time"
)

// These benchmarks ask a live service that has an inventory of 10,000 nodes; tests/go/run --bench
// starts one. Each reports the median and the 99th percentile beside the mean.

const benchPolicy = `policy "Bench least used" {
  id = "bench-least-used"
  type = "placement"
  description = "Keeps away from nodes that are nearly full and prefers those with room."
  rules {
    rule "nearly full" {
      id = "nearly-full"
      priority = 100
      hard_constraint = true
      when { node.used_cpu > node.cpu * 0.9 }
      then { filter "CPU is nearly used up" }
    }
    rule "room" {
      id = "room"
      priority = 50
      when { node.available_cpu > 0 }
      then { score node.available_cpu "free cores" }
    }
  }
}`

// BenchmarkEvaluate10k evaluates one policy with a filter and a score.
func BenchmarkEvaluate10k(b *testing.B) {
	client, _ := benchFleet(b, "/scheduler/policies/{id}/activate", "/scheduler/policies/evaluate/placement")
	ctx := context.Background()
	client.DeletePolicy(ctx, "bench-least-used")
	if _, err := client.RegisterPolicy(ctx, PolicyDraft{DSL: benchPolicy, Author: "bench"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.DeletePolicy(ctx, "bench-least-used") })
	if err := client.ActivatePolicy(ctx, "bench-least-used", PolicyConfiguration{}); err != nil {
		b.Fatal(err)
	}
	request := EvaluationRequest{VM: map[string]any{"id": "bench", "cpu_cores": 2, "memory_gb": 4}, Limit: 10}
	measure(b, func() error {
		evaluation, err := client.EvaluatePlacement(ctx, request)
		if err == nil && len(evaluation.Nodes) == 0 {
			err = fmt.Errorf("no node passed")
		}
		return err
	})
}

// BenchmarkCustomScheduler10k is a placement by the seam of NovaCron's scheduler, which hands over
// all its nodes.
func BenchmarkCustomScheduler10k(b *testing.B) {
	client, syncer := benchFleet(b, "/scheduler/vms/{vm_id}/schedule")
	options := schedulerOptions()
	options.Inventory = syncer
	schedule := NewCustomScheduler(client, options)
	nodes := pointers(benchNodes()...)
	placed := 0
	measure(b, func() error {
		placed++
		vm := &myVM{fmt.Sprintf("bench-%d-%d", time.Now().UnixNano(), placed), VMConfig{Name: "bench", Type: "kvm", CPUShares: 1, MemoryMB: 1}}
		_, err := schedule(vm, nodes)
		return err
	})
	if served := options.Counters.Served.Load(); served != uint64(placed) {
		b.Errorf("the service decided %d of %d", served, placed)
	}
}

// BenchmarkSync10k tells the service of a hundred nodes that have changed.
func BenchmarkSync10k(b *testing.B) {
	client := live(b, "/scheduler/inventory")
	nodes := benchNodes()
	syncer := NewInventorySyncer(client, func() []NodeResourceInfo { return nodes }, InventorySyncerOptions{Timeout: time.Minute})
	mustSync(b, syncer)
	round := 0
	measure(b, func() error {
		round++
		for i := 0; i < 100; i++ {
			nodes[(round*100+i)%len(nodes)].UsedMemoryMB = round % 1000
		}
		return syncer.Sync(context.Background())
	})
}

func benchFleet(b *testing.B, routes ...string) (*Client, *InventorySyncer) {
	client := live(b, append(routes, "/scheduler/inventory")...)
	syncer := NewInventorySyncer(client, benchNodes, InventorySyncerOptions{})
	mustSync(b, syncer)
	return client, syncer
}

func benchNodes() []NodeResourceInfo {
	nodes := make([]NodeResourceInfo, 10_000)
	for i := range nodes {
		nodes[i] = with(node(fmt.Sprintf("bench-%05d", i)), func(n *NodeResourceInfo) {
			n.TotalCPU, n.UsedCPU = 64, i*7%64
			n.TotalMemoryMB, n.UsedMemoryMB = 262_144, i*13%200_000
			n.Labels = map[string]string{"zone": fmt.Sprint("z", i%3)}
		})
	}
	return nodes
}

// measure runs the call and reports how long it took.
func measure(b *testing.B, call func() error) {
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	b.StopTimer()
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
