// Package novaplace connects a Go program, NovaCron's core first of all, to the novaplace service.
//
// [Client] is the HTTP client: context first, deadlines that travel, typed errors, retries that
// cannot become a storm, and a circuit breaker. Four adapters stand on it, one for each seam that
// NovaCron's core offers:
//
//   - [NewCustomScheduler] makes the function that vm.VMScheduler.SetCustomScheduler takes. It
//     answers within its own deadline whatever the service does.
//   - [PlacementEngine] has the method set of orchestration/placement.PlacementEngine.
//   - [EventBridge] is a listener for VM events that never blocks who calls it.
//   - [InventorySyncer] keeps the service's picture of the nodes up to date by deltas, so that a
//     placement need not carry the node list.
//
// The package imports the standard library only, and nothing of NovaCron's: its adapters are
// generic over the caller's types, or read them by functions that the caller gives. README.md has
// the lines that wire each of them.
//
// NovaCron says node where the service says host; this package speaks NovaCron's language.
package novaplace
