package novaplace

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestKeysAreNovaCrons compares the JSON of filled values with text that NovaCron's structs make of
// the same values, and reads it back.
func TestKeysAreNovaCrons(t *testing.T) {
	cases := map[string]struct {
		value any
		text  string
	}{
		"a node": {
			&NodeResourceInfo{"n1", 16, 4, 32768, 8192, 500, 100, 25, 25, 20, 3, "available", map[string]string{"zone": "z1"}},
			`{"node_id":"n1","total_cpu":16,"used_cpu":4,"total_memory_mb":32768,"used_memory_mb":8192,"total_disk_gb":500,
			"used_disk_gb":100,"cpu_usage_percent":25,"memory_usage_percent":25,"disk_usage_percent":20,"vm_count":3,
			"status":"available","labels":{"zone":"z1"}}`,
		},
		"a VM of nothing": {
			&VMConfig{},
			`{"id":"","name":"","type":"","command":"","args":null,"cpu_shares":0,"memory_mb":0,"disk_size_gb":0,"rootfs":"",
			"image":"","cloud_init_iso":"","mounts":null,"env":null,"network_id":"","work_dir":"","tags":null}`,
		},
		"a VM of everything": {
			&VMConfig{
				ID: "v1", Name: "web", Type: "kvm", Args: []string{"-x"}, CPUShares: 2048, MemoryMB: 4096, DiskSizeGB: 40,
				Mounts: []Mount{{"/a", "/b", "bind", 1, ""}}, Env: map[string]string{"A": "b"}, OwnerID: "o", TenantID: "t",
				VolumeAttachments:  []VolumeAttachment{{VolumeID: "vol", Boot: true}},
				NetworkAttachments: []NetworkAttachment{{NetworkID: "net", IPAddress: "10.0.0.2", Primary: true}},
				Placement:          &VMPlacementSpec{"custom", []string{"n1"}, []string{"n2"}},
				Migration:          &MigrationSpec{"live", 100, 1, 2}, Replication: &ReplicationSpec{true, 2, "sync"},
				Tags: map[string]string{"disk": "ssd"},
			},
			`{"id":"v1","name":"web","type":"kvm","command":"","args":["-x"],"cpu_shares":2048,"memory_mb":4096,"disk_size_gb":40,
			"rootfs":"","image":"","cloud_init_iso":"","mounts":[{"source":"/a","target":"/b","type":"bind","flags":1,"data":""}],
			"env":{"A":"b"},"network_id":"","owner_id":"o","tenant_id":"t","volume_attachments":[{"volume_id":"vol","boot":true}],
			"network_attachments":[{"network_id":"net","ip_address":"10.0.0.2","primary":true}],
			"placement":{"policy":"custom","preferred_nodes":["n1"],"excluded_nodes":["n2"]},
			"migration":{"type":"live","bandwidth_limit":100,"compression_level":1,"priority":2},
			"replication":{"enabled":true,"factor":2,"mode":"sync"},"work_dir":"","tags":{"disk":"ssd"}}`,
		},
		"a placement": {
			&PlacementRequest{
				VMID: "v1", VMSpec: VMSpec{CPU: 2, Memory: 2048, Storage: 20, Network: NetworkRequirements{BandwidthMbps: 100}, GPU: &GPURequirements{Count: 1, Model: "a100"}},
				Constraints: []Constraint{{"affinity", "hard", map[string]any{"with": "v0"}, 0.5}},
				Preferences: []Preference{{"low_cost", 0.25, nil}}, Strategy: "balanced", ExcludeNodes: []string{"n9"},
			},
			`{"vm_id":"v1","vm_spec":{"cpu_cores":2,"memory_mb":2048,"storage_gb":20,"network":{"bandwidth_mbps":100},"gpu":{"count":1,"model":"a100"}},
			"constraints":[{"type":"affinity","enforcement":"hard","parameters":{"with":"v0"},"weight":0.5}],
			"preferences":[{"type":"low_cost","weight":0.25,"parameters":null}],"strategy":"balanced","exclude_nodes":["n9"]}`,
		},
	}
	for name, c := range cases {
		encoded, err := json.Marshal(c.value)
		want := strings.NewReplacer("\n\t\t\t", "").Replace(c.text)
		if err != nil || string(encoded) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, encoded, want)
		}
		back := reflect.New(reflect.TypeOf(c.value).Elem()).Interface()
		if err := json.Unmarshal([]byte(want), back); err != nil || !reflect.DeepEqual(back, c.value) {
			t.Errorf("%s: read back as %+v, %v", name, back, err)
		}
	}
}

func TestSharesAreCoresUpTo128(t *testing.T) {
	for shares, cores := range map[int]int{-1: 0, 0: 0, 1: 1, 128: 128, 129: 1, 1024: 1, 1025: 2, 4096: 4} {
		if got := CPUCores(shares); got != cores {
			t.Errorf("%d shares are %d cores, got %d", shares, cores, got)
		}
	}
}
