package cluster

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/model"
	"blis/pkg/strictyaml"
)

// TestSmallestAndLargestValues: the values at the ends of a range are allowed, those beyond it are errors.
func TestSmallestAndLargestValues(t *testing.T) {
	errorf := func(path, format string, args ...any) error { return fmt.Errorf(path+": "+format, args...) }
	group := func(kind model.KVKind, size, layers, window int) error {
		g := model.KVGroup{Kind: kind, BlockSize: size, Layers: layers, WindowTokens: window}
		return checkGroups(&Computed{KVGroups: []model.KVGroup{g}}, "computed", errorf)
	}
	fusion := func(mb float64) error {
		return (&Kernels{FIAllReduceFusionMaxSizeMB: &mb}).check("kernels", errorf)
	}
	waiting := func(n int) error {
		between := func(name string, v, least, most int64) error {
			if v < least || v > most {
				return errorf(name, "must be between %d and %d", least, most)
			}
			return nil
		}
		return (&Deployment{Backpressure: &Backpressure{MaxWaiting: n}}).checkBackpressure(between)
	}
	for name, err := range map[string]error{
		"a block": group(model.KVFull, 1, 1, 0), "a window": group(model.KVWindow, 1, 1, 1),
		"no fusion": fusion(0), "most fusion": fusion(1024), "one waits": waiting(1),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no block": group(model.KVFull, 0, 1, 0), "no layer": group(model.KVFull, 1, 0, 0),
		"no window": group(model.KVWindow, 1, 1, 0), "less than none": fusion(-0.5), "more fusion": fusion(1024.5),
		"none waits": waiting(0),
	} {
		if err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestHitSize: hits end where the blocks of all groups do, but for a block that holds the state of a whole sequence.
func TestHitSize(t *testing.T) {
	for _, c := range []struct {
		sizes   []int
		caching bool
		want    int
	}{{nil, false, 16}, {[]int{16, 48}, true, 48}, {[]int{24, 36}, true, 144}, {[]int{1000}, true, 2000},
		{[]int{1000}, false, 16}} {
		memory := Memory{BlockSize: 16, EnablePrefixCaching: c.caching}
		d := &Deployment{Computed: &Computed{}, Engine: Engine{Memory: memory}}
		for _, size := range c.sizes {
			kind := model.KVFull
			if size == 1000 {
				kind = model.KVState
			}
			d.Computed.KVGroups = append(d.Computed.KVGroups, model.KVGroup{Kind: kind, BlockSize: size})
		}
		if got := d.HitSize(); got != c.want {
			t.Errorf("%v: %d, want %d", c, got, c.want)
		}
	}
}

// TestSnapshotDefaults: load is known at once, statistics a little later; Default overrides both.
func TestSnapshotDefaults(t *testing.T) {
	for _, c := range []struct {
		start Snapshots
		tiers bool
		want  string
	}{
		{Snapshots{}, false, "immediate, immediate, immediate, periodic 10ms, periodic 100ms, periodic 100ms, " +
			"immediate, immediate, "},
		{Snapshots{Default: "periodic 1s", HitRate: "immediate"}, true, "periodic 1s, periodic 1s, periodic 1s, " +
			"immediate, periodic 1s, periodic 1s, periodic 1s, periodic 1s, periodic 1s"},
	} {
		s := c.start
		s.SetDefaults(c.tiers)
		var got []string
		for _, r := range s.Fields() {
			got = append(got, string(*r))
		}
		if all := strings.Join(got, ", "); all != c.want {
			t.Errorf("%q, want %q", all, c.want)
		}
	}
}

// decode reads YAML into v.
func decode(t *testing.T, text string, v any) error {
	t.Helper()
	doc, err := strictyaml.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Decode(v)
}

// TestUsedShare: an eager store waits for nothing, one with a threshold for that share of the blocks.
func TestUsedShare(t *testing.T) {
	for text, want := range map[string]float64{"{}": 0, "{policy: eager, threshold: 0.5}": 0,
		"{policy: threshold}": 0.9, "{policy: threshold, threshold: 0.5}": 0.5} {
		var o KVOffload
		if err := decode(t, text, &o); err != nil || o.UsedShare() != want {
			t.Errorf("%s: %v %v, want %v", text, o.UsedShare(), err, want)
		}
	}
	var b Backpressure
	if err := decode(t, "{}", &b); err != nil || b.MaxWaiting != 8 {
		t.Errorf("%d requests wait by default, want 8: %v", b.MaxWaiting, err)
	}
}

// TestServedTwice: a model of several deployments, whichever they are.
func TestServedTwice(t *testing.T) {
	c := &Config{Deployments: []Deployment{{Model: "a"}, {Model: "b"}, {Model: "a"}}}
	if !c.servedTwice("a") || c.servedTwice("b") || c.servedTwice("c") {
		t.Errorf("a %v, b %v, c %v", c.servedTwice("a"), c.servedTwice("b"), c.servedTwice("c"))
	}
}
