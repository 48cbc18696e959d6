package spill

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stat"
)

// TestMergeEqualsSort: all samples come back, in ascending order, whatever the runs: short and long ones, equal keys,
// small and huge differences, runs that do not overlap.
func TestMergeEqualsSort(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var all, merged []stat.Keyed
		var runs Runs
		for i := range random.IntN(40) {
			var samples []stat.Keyed
			for range random.IntN(3000) {
				key := random.Uint64() >> random.IntN(64)
				switch seed % 4 {
				case 1:
					key = random.Uint64N(3)
				case 2:
					key = uint64(1000*i) + random.Uint64N(1000)
				case 3:
					key = math.MaxUint64 - random.Uint64N(2)
				}
				samples = append(samples, stat.Keyed{Key: key, Tag: random.Uint32()})
			}
			all = append(all, samples...)
			sorted := stat.SortKeyed(samples, make([]stat.Keyed, len(samples)))
			if err := runs.Append(sorted); err != nil {
				t.Fatal(err)
			}
		}
		largest := 0
		if err := runs.Merge(func(sorted []stat.Keyed) {
			largest = max(largest, len(sorted))
			merged = append(merged, sorted...)
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(merged, byKey) {
			t.Errorf("seed %d: not in order", seed)
		}
		slices.SortFunc(all, byKeyAndTag)
		slices.SortFunc(merged, byKeyAndTag)
		if !slices.Equal(all, merged) || runs.Empty() != (len(all) == 0) {
			t.Errorf("seed %d: %d samples of %d, or other ones", seed, len(merged), len(all))
		}
		if limit := len(runs.runs) * blockSize; largest > limit {
			t.Errorf("seed %d: %d samples in memory, want at most %d", seed, largest, limit)
		}
		runs.Close()
	}
}

func byKey(a, b stat.Keyed) int {
	if a.Key < b.Key {
		return -1
	}
	if a.Key > b.Key {
		return 1
	}
	return 0
}

func byKeyAndTag(a, b stat.Keyed) int {
	if a.Key == b.Key {
		return int(int64(a.Tag) - int64(b.Tag))
	}
	return byKey(a, b)
}

// TestFileHasNoName: nothing is left of a process that is killed.
func TestFileHasNoName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file keeps its name")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var runs Runs
	defer runs.Close()
	if err := runs.Append([]stat.Keyed{{Key: 1}}); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestErrorsNameTMPDIR: a folder that is missing, and a file that cannot be written or is cut.
func TestErrorsNameTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var runs Runs
	check := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "TMPDIR can name a folder") {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("missing folder", runs.Append([]stat.Keyed{{Key: 1}}))
	t.Setenv("TMPDIR", t.TempDir())
	runs = Runs{}
	if err := runs.Append([]stat.Keyed{{Key: 1}, {Key: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := runs.file.Truncate(1); err != nil {
		t.Fatal(err)
	}
	check("cut file", runs.Merge(func([]stat.Keyed) {}))
	runs.file.Close()
	check("closed file", runs.Append([]stat.Keyed{{Key: 3}}))
}
