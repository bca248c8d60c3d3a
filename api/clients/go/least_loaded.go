package novaplace

import "errors"

// ErrNoNodeFits has NovaCron's text for it.
var ErrNoNodeFits = errors.New("no node has enough resources for the VM")

// Limits are the checks of a node without the service. The fields that NovaCron's
// vm.SchedulerConfig has too mean the same, down to factors that count only above one.
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
	// The rest is for deciding without the service.
	CPUShares  int
	MemoryMB   int
	DiskSizeGB int
	Tags       map[string]string
}

// leastLoaded returns the node of the lowest load that takes the VM. Load is the mean of the used
// shares of CPU and memory; ties go to the lowest id, so that the order of nodes does not matter.
func leastLoaded(vm VMView, limits Limits, count int, node func(int) NodeResourceInfo) (string, error) {
	best, lowest := "", 0.0
	for i := 0; i < count; i++ {
		candidate := node(i)
		if !limits.admit(vm, candidate) {
			continue
		}
		load := usedShare(candidate.UsedCPU, candidate.TotalCPU) + usedShare(candidate.UsedMemoryMB, candidate.TotalMemoryMB)
		if best == "" || load < lowest || (load == lowest && candidate.NodeID < best) {
			best, lowest = candidate.NodeID, load
		}
	}
	if best == "" {
		return "", ErrNoNodeFits
	}
	return best, nil
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
