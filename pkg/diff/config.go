package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Setting is a value of the configuration, as JSON, that is not the same on both
// sides; what one side does not have is absent.
type Setting struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"`
	B    json.RawMessage `json:"b,omitempty"`
}

// compareSettings lists where the headers differ, in the order of their paths: in
// what was simulated, not in how much was told of it.
func (c *comparison) compareSettings() []Setting {
	a, b := settings(c.sides[0].header), settings(c.sides[1].header)
	paths := slices.Collect(maps.Keys(a))
	for path := range b {
		if _, both := a[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	list := []Setting{}
	for _, path := range paths {
		if string(a[path]) != string(b[path]) {
			list = append(list, Setting{path, a[path], b[path]})
		}
	}
	return list
}

// settings are the leaves of a header by their paths.
func settings(h *stream.Header) map[string]json.RawMessage {
	about := map[string]any{"tool": h.Tool, "tool_version": h.Version, "slo_classes": h.SLOClasses}
	if run := h.Run; run != nil {
		about["seeds"] = map[string]uint64{"workload": run.Key.WorkloadSeed, "simulation": run.Key.SimSeed, "jitter": run.Key.JitterSeed}
		about["workload"] = run.Workload
		about["clairvoyant"] = run.Clairvoyant
		if run.HorizonUS != nil {
			about["horizon_us"] = *run.HorizonUS
		}
		about["config"] = run.Config
	}
	text, err := json.Marshal(about)
	if err != nil {
		panic("diff: " + err.Error()) // it came from JSON
	}
	var tree any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		panic("diff: " + err.Error())
	}
	leaves := map[string]json.RawMessage{}
	flatten(tree, "", leaves)
	return leaves
}

// flatten adds the leaves of v to them, under paths as blis-sim --set has them:
// members of lists by their id or name, where they have one. The configuration is
// the root.
func flatten(v any, path string, leaves map[string]json.RawMessage) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v { // the order does not matter: all go into a map
			at := key
			if path != "" && path != "config" {
				at = path + "." + key
			}
			flatten(below, at, leaves)
		}
	case []any:
		if scalars(v) {
			leaves[path], _ = json.Marshal(v)
			return
		}
		for i, below := range v {
			flatten(below, path+"."+keyOf(below, i), leaves)
		}
	default:
		leaves[path], _ = json.Marshal(v)
	}
}

// scalars reports whether a list holds nothing that has members.
func scalars(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

// keyOf is what a member of a list is called.
func keyOf(v any, i int) string {
	m, _ := v.(map[string]any)
	for _, name := range []string{"id", "name"} {
		if s, ok := m[name].(string); ok {
			return s
		}
	}
	return fmt.Sprint(i)
}
