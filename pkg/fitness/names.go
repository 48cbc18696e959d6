package fitness

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/anomaly"
	"blis/pkg/metrics"
	"blis/pkg/registry"
)

// Names begin with one of these trees.
const (
	ownTree    = "m"
	baseTree   = "base"
	parentTree = "parent"
)

var treeNames = []string{ownTree, baseTree, parentTree}

// aliases are the names of vLLM's benchmark (vllm bench serve, --save-result) with their paths in the
// tree.
var aliases = func() map[string]string {
	all := map[string]string{"duration": "duration_s", "completed": "requests.completed",
		"request_throughput": "throughput.rps", "request_goodput": "goodput.rps",
		"output_throughput": "throughput.output_tok_s", "total_token_throughput": "throughput.total_tok_s"}
	for alias, path := range map[string]string{"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"} {
		for stat, field := range map[string]string{"mean": "mean", "median": "p50", "p50": "p50", "p90": "p90",
			"p95": "p95", "p99": "p99", "max": "max"} {
			all[stat+"_"+alias+"_ms"] = path + "." + field
		}
	}
	return all
}()

// splitName divides a name into tree and path: m.ttft.p99, base.p99_ttft_ms, p99_ttft_ms. An alias
// without a tree is of the run itself.
func splitName(name string) (tree, path string) {
	if to, ok := aliases[name]; ok {
		return ownTree, to
	}
	tree, path, _ = strings.Cut(name, ".")
	if to, ok := aliases[path]; ok {
		path = to
	}
	return tree, path
}

// checkName returns an error for a name that no run has.
func checkName(name string) error {
	tree, path := splitName(name)
	if !slices.Contains(treeNames, tree) {
		names := slices.Clone(treeNames)
		for alias := range aliases {
			names = append(names, alias)
		}
		slices.Sort(names)
		if near := registry.Closest(name, names); near != "" && !slices.Contains(treeNames, near) {
			return fmt.Errorf("unknown name %q; did you mean %q?", name, near)
		}
		if near := closestPath(name); near != "" {
			return fmt.Errorf("unknown name %q; did you mean %q?", name, ownTree+"."+near)
		}
		return fmt.Errorf("unknown name %q (names are paths such as m.ttft.p99, base.ttft.p99 and parent.ttft.p99,"+
			" or those of vLLM, such as p99_ttft_ms)", name)
	}
	if kind, ok := strings.CutPrefix(path, "anomalies."); ok {
		_, err := anomaly.Detectors.Get("anomaly", kind)
		return err
	}
	if _, ok := metrics.LookupPath(path); ok {
		return nil
	}
	return unknownPath(tree, path)
}

// unknownPath is the error for a path that no tree has: it lists the names below the longest part of it
// that exists.
func unknownPath(tree, path string) error {
	if have := childNames(path); have != nil {
		return fmt.Errorf("%q is only the beginning of a name (have %s)", joinName(tree, path),
			strings.Join(have, ", "))
	}
	at := path
	for at != "" && childNames(at) == nil {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	hint := ""
	if near := closestPath(path); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", joinName(tree, near))
	}
	return fmt.Errorf("unknown name %q%s (%s has %s)", joinName(tree, path), hint, joinName(tree, at),
		strings.Join(childNames(at), ", "))
}

// childNames are the names directly below path, nil if there are none.
func childNames(path string) []string {
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

// closestPath is the existing path that path is probably a misspelling of, with its keys; "" if there is
// none.
func closestPath(path string) string {
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

func joinName(tree, path string) string {
	if path == "" {
		return tree
	}
	return tree + "." + path
}
