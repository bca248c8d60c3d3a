package novaplace

// VMConfig is what NovaCron's vm.VMConfig looks like on the wire. Callers that have NovaCron's own
// type send that as it is: methods that take a VM's configuration take any value with these keys.
type VMConfig struct {
	ID                 string              `json:"id"`
	Name               string              `json:"name"`
	Type               string              `json:"type"`
	Command            string              `json:"command"`
	Args               []string            `json:"args"`
	CPUShares          int                 `json:"cpu_shares"`
	MemoryMB           int                 `json:"memory_mb"`
	DiskSizeGB         int                 `json:"disk_size_gb"`
	RootFS             string              `json:"rootfs"`
	Image              string              `json:"image"`
	CloudInitISO       string              `json:"cloud_init_iso"`
	Mounts             []Mount             `json:"mounts"`
	Env                map[string]string   `json:"env"`
	NetworkID          string              `json:"network_id"`
	OwnerID            string              `json:"owner_id,omitempty"`
	TenantID           string              `json:"tenant_id,omitempty"`
	VolumeAttachments  []VolumeAttachment  `json:"volume_attachments,omitempty"`
	NetworkAttachments []NetworkAttachment `json:"network_attachments,omitempty"`
	Placement          *VMPlacementSpec    `json:"placement,omitempty"`
	Migration          *MigrationSpec      `json:"migration,omitempty"`
	Replication        *ReplicationSpec    `json:"replication,omitempty"`
	WorkDir            string              `json:"work_dir"`
	Tags               map[string]string   `json:"tags"`
}

// VMPlacementSpec is a VM's own wish. Preferred nodes are tried first; excluded ones never.
type VMPlacementSpec struct {
	// Policy is balanced, consolidated, performance, efficiency, network-aware, custom or empty.
	Policy         string   `json:"policy,omitempty"`
	PreferredNodes []string `json:"preferred_nodes,omitempty"`
	ExcludedNodes  []string `json:"excluded_nodes,omitempty"`
}

// Mount is a file system that the VM sees.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Type   string `json:"type"`
	Flags  int    `json:"flags"`
	Data   string `json:"data"`
}

// VolumeAttachment is a volume of the VM.
type VolumeAttachment struct {
	VolumeID string `json:"volume_id"`
	Device   string `json:"device,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Boot     bool   `json:"boot,omitempty"`
}

// NetworkAttachment is a network interface of the VM.
type NetworkAttachment struct {
	NetworkID     string `json:"network_id"`
	InterfaceName string `json:"interface_name,omitempty"`
	MACAddress    string `json:"mac_address,omitempty"`
	IPAddress     string `json:"ip_address,omitempty"`
	Primary       bool   `json:"primary,omitempty"`
}

// MigrationSpec says how the VM may be moved: cold, warm, live or checkpoint.
type MigrationSpec struct {
	Type             string `json:"type"`
	BandwidthLimit   int64  `json:"bandwidth_limit"`
	CompressionLevel int    `json:"compression_level"`
	Priority         int    `json:"priority"`
}

// ReplicationSpec says how often the VM exists.
type ReplicationSpec struct {
	Enabled bool   `json:"enabled"`
	Factor  int    `json:"factor"`
	Mode    string `json:"mode"`
}

// StatusAvailable is the only node status that takes VMs.
const StatusAvailable = "available"

// NodeResourceInfo has the fields of NovaCron's vm.NodeResourceInfo in their order, so that Go
// converts one into the other: novaplace.NodeResourceInfo(node).
type NodeResourceInfo struct {
	NodeID             string            `json:"node_id"`
	TotalCPU           int               `json:"total_cpu"`
	UsedCPU            int               `json:"used_cpu"`
	TotalMemoryMB      int               `json:"total_memory_mb"`
	UsedMemoryMB       int               `json:"used_memory_mb"`
	TotalDiskGB        int               `json:"total_disk_gb"`
	UsedDiskGB         int               `json:"used_disk_gb"`
	CPUUsagePercent    float64           `json:"cpu_usage_percent"`
	MemoryUsagePercent float64           `json:"memory_usage_percent"`
	DiskUsagePercent   float64           `json:"disk_usage_percent"`
	VMCount            int               `json:"vm_count"`
	Status             string            `json:"status"`
	Labels             map[string]string `json:"labels,omitempty"`
}

// CPUCores is how many cores cpu_shares stand for: up to 128 they are cores, above they are shares
// of which 1024 make a core.
func CPUCores(shares int) int {
	switch {
	case shares <= 0:
		return 0
	case shares > 128:
		return (shares + 1023) / 1024
	default:
		return shares
	}
}
