package operators

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	files "blis/hardware/operators"
)

// systems are the names that the tables have for GPUs.
var systems = map[string]string{
	"A100-SXM-80GB": "a100_sxm", "A100-SXM-40GB": "a100_sxm", "A100-PCIe-80GB": "a100_pcie",
	"H100-SXM-80GB":  "h100_sxm",
	"H100-PCIe-80GB": "h100_pcie", "H200-SXM-141GB": "h200_sxm", "B200-SXM-180GB": "b200_sxm", "B300-SXM": "b300_sxm",
	"L40S-48GB": "l40s", "L4-24GB": "l4", "A30-24GB": "a30", "RTX-PRO-6000": "rtx_pro_6000_server",
	"RTX-PRO-6000-Server": "rtx_pro_6000_server",
}

// standIns says what was measured instead of GPUs that have no tables of their own.
var standIns = map[string]string{
	"A100-SXM-40GB": "kernels were measured on A100-SXM-80GB, whose memory has 1.3 times the bandwidth",
	"RTX-PRO-6000":  "kernels were measured on RTX-PRO-6000-Server, which has another power limit",
}

// System returns the name that the tables have for a GPU: its id in lower case unless they differ.
func System(gpu string) string {
	if name, ok := systems[gpu]; ok {
		return name
	}
	return strings.ReplaceAll(strings.ToLower(gpu), "-", "_")
}

// Load returns the tables of a GPU: those of a folder systems of aiconfigurator-core or, if folder is
// "", the built-in ones. ErrNone means that there are none.
func Load(folder, gpu string) (*Tables, error) {
	t, err := load(folder, gpu)
	if err == nil && standIns[gpu] != "" {
		t.notes = []string{standIns[gpu]}
	}
	return t, err
}

func load(folder, gpu string) (*Tables, error) {
	system := System(gpu)
	if folder != "" {
		t, err := read(folder, system)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w of %s (no data/%s)", folder, ErrNone, gpu, system)
		}
		return t, err
	}
	packed, err := files.Files.ReadFile(system + ".z")
	if err != nil {
		return nil, fmt.Errorf("%w of %s", ErrNone, gpu)
	}
	once, _ := builtIn.LoadOrStore(system, sync.OnceValues(func() (*Tables, error) { return decode(system, packed) }))
	t, err := once.(func() (*Tables, error))()
	if err != nil {
		return nil, err
	}
	return &Tables{System: system, series: t.series, axes: map[string][2][]float64{}}, nil
}

// builtIn has the built-in tables of systems that were asked for, as functions that decode them once. Their
// series do not change.
var builtIn sync.Map

// ErrNone: there are no tables of a GPU.
var ErrNone = errors.New("there are no tables of measured kernels")
