package fitness

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/anomaly"
	"blis/pkg/metrics"
	"blis/pkg/registry"
)

// The trees that names begin with.
const (
	own    = "m"
	base   = "base"
	parent = "parent"
)

var trees = []string{own, base, parent}

// aliases are the names of vLLM's benchmark (vllm bench serve, --save-result) and
// where the tree has what they mean.
var aliases = func() map[string]string {
	all := map[string]string{"duration": "duration_s", "completed": "requests.completed", "request_throughput": "throughput.rps",
		"request_goodput": "goodput.rps", "output_throughput": "throughput.output_tok_s", "total_token_throughput": "throughput.total_tok_s"}
	for theirs, ours := range map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"} {
		for stat, of := range map[string]string{"mean": "mean", "median": "p50", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "max": "max"} {
			all[stat+"_"+theirs+"_ms"] = ours + "." + of
		}
	}
	return all
}()

// split is a name as tree and path: m.ttft.p99, base.p99_ttft_ms, p99_ttft_ms. A
// bare name is of the run itself.
func split(name string) (tree, path string) {
	if to, ok := aliases[name]; ok {
		return own, to
	}
	tree, path, _ = strings.Cut(name, ".")
	if to, ok := aliases[path]; ok {
		path = to
	}
	return tree, path
}

// check says what is wrong with a name, whatever the run.
func check(name string) error {
	tree, path := split(name)
	if !slices.Contains(trees, tree) {
		names := slices.Clone(trees)
		for alias := range aliases {
			names = append(names, alias)
		}
		slices.Sort(names)
		if near := registry.Closest(name, names); near != "" && !slices.Contains(trees, near) {
			return fmt.Errorf("unknown name %q; did you mean %q?", name, near)
		}
		if near := nearest(name); near != "" {
			return fmt.Errorf("unknown name %q; did you mean %q?", name, own+"."+near)
		}
		return fmt.Errorf("unknown name %q (names begin with m., base. or parent., such as m.ttft.p99, or are vLLM's, such as p99_ttft_ms)", name)
	}
	if kind, ok := strings.CutPrefix(path, "anomalies."); ok {
		_, err := anomaly.Detectors.Get("anomaly", kind)
		return err
	}
	if _, ok := metrics.LookupPath(path); ok {
		return nil
	}
	return unknown(tree, path)
}

// unknown is the error for a path that no tree has: it names what stands at the
// longest part of it that there is.
func unknown(tree, path string) error {
	for at := path; ; {
		have := children(at)
		if at == path && have != nil {
			return fmt.Errorf("%q is only the beginning of a name (have %s)", join(tree, at), strings.Join(have, ", "))
		}
		cut := max(strings.LastIndexByte(at, '.'), strings.LastIndexByte(at, '['))
		if at = at[:max(cut, 0)]; at != "" && children(at) == nil {
			continue
		}
		hint := ""
		if near := nearest(path); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", join(tree, near))
		}
		return fmt.Errorf("unknown name %q%s (%s has %s)", join(tree, path), hint, join(tree, at), strings.Join(children(at), ", "))
	}
}

// children are the names that stand right below path, nil if there are none.
func children(path string) []string {
	var all []string
	general := metrics.WildcardPath(path)
	for _, p := range metrics.Paths() {
		rest, ok := strings.CutPrefix(p.Path, general)
		if !ok || rest == "" || general != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		child := strings.TrimPrefix(rest, ".")
		if i := strings.IndexAny(child[1:], ".["); i >= 0 {
			child = child[:i+1]
		}
		if !slices.Contains(all, child) {
			all = append(all, child)
		}
	}
	return all
}

// nearest is the path of a place that path may be a slip of, with its keys; "" if
// there is none.
func nearest(path string) string {
	var have []string
	for _, p := range metrics.Paths() {
		have = append(have, p.Path)
	}
	near := registry.Closest(metrics.WildcardPath(path), have)
	for _, key := range metrics.PathKeys(path) {
		near = strings.Replace(near, "[*]", key, 1)
	}
	return near
}

func join(tree, path string) string {
	if path == "" {
		return tree
	}
	return tree + "." + path
}
