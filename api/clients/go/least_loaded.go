package novaplace

import "errors"

// ErrNoNodeFits has NovaCron's text for it.
var ErrNoNodeFits = errors.New("no node has enough resources for the VM")

// Limits are the checks that NovaCron's scheduler makes of a node before it uses one, and leaves to
// whoever takes its place. The fields that its vm.SchedulerConfig has too mean the same, down to
// factors that count only above one.
type Limits struct {
	// EnableNodeLabels asks that every tag of the VM is a label of the node.
	EnableNodeLabels bool
	// MaxVMsPerNode is no limit when zero.
	MaxVMsPerNode       int
	MaxCPUOvercommit    float64
	MaxMemoryOvercommit float64
	// IgnoreDisk leaves the disk out, as NovaCron's own scheduler does until it reserves.
	IgnoreDisk bool
}

// VMView is what a scheduler needs to know of a VM.
type VMView struct {
	ID string
	// Config is what the service gets: a [VMConfig] or any value that is encoded with the same keys.
	Config any
	// The rest is for the checks that are made here.
	CPUShares  int
	MemoryMB   int
	DiskSizeGB int
	Tags       map[string]string
}

// candidate is a node that takes the VM, and how loaded it is: the used shares of CPU and memory.
type candidate struct {
	id   string
	load float64
}

// leastLoaded returns the candidate of the lowest load. Ties go to the lowest id, so that the order
// of the candidates does not matter. There must be one.
func leastLoaded(candidates []candidate) string {
	best := candidates[0]
	for _, other := range candidates[1:] {
		if other.load < best.load || (other.load == best.load && other.id < best.id) {
			best = other
		}
	}
	return best.id
}

func loadOf(node NodeResourceInfo) float64 {
	return usedShare(node.UsedCPU, node.TotalCPU) + usedShare(node.UsedMemoryMB, node.TotalMemoryMB)
}

func (l Limits) admit(vm VMView, node NodeResourceInfo) bool {
	if node.NodeID == "" || node.Status != StatusAvailable {
		return false
	}
	if l.MaxVMsPerNode > 0 && node.VMCount >= l.MaxVMsPerNode {
		return false
	}
	if CPUCores(vm.CPUShares) > stretched(node.TotalCPU, l.MaxCPUOvercommit)-node.UsedCPU {
		return false
	}
	if vm.MemoryMB > stretched(node.TotalMemoryMB, l.MaxMemoryOvercommit)-node.UsedMemoryMB {
		return false
	}
	if !l.IgnoreDisk && vm.DiskSizeGB > node.TotalDiskGB-node.UsedDiskGB {
		return false
	}
	if l.EnableNodeLabels {
		for key, value := range vm.Tags {
			if label, ok := node.Labels[key]; !ok || label != value {
				return false
			}
		}
	}
	return true
}

// seen is the node as the service should see it, which knows neither factors nor a most of VMs: with
// its totals stretched, and not available once it has its most.
func (l Limits) seen(node NodeResourceInfo) NodeResourceInfo {
	node.TotalCPU = stretched(node.TotalCPU, l.MaxCPUOvercommit)
	node.TotalMemoryMB = stretched(node.TotalMemoryMB, l.MaxMemoryOvercommit)
	if l.MaxVMsPerNode > 0 && node.VMCount >= l.MaxVMsPerNode && node.Status == StatusAvailable {
		node.Status = statusFull
	}
	return node
}

// statusFull is any status but available.
const statusFull = "full"

func stretched(total int, factor float64) int {
	if factor > 1 {
		return int(float64(total) * factor)
	}
	return total
}

func usedShare(used, total int) float64 {
	if total <= 0 {
		return 1
	}
	return float64(used) / float64(total)
}
