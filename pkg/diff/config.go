package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Setting is a configuration value, as JSON, that differs between the two sides. It is
// absent on a side that does not have it.
type Setting struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"`
	B    json.RawMessage `json:"b,omitempty"`
}

// compareSettings lists the settings of what was simulated that differ, by path. It
// ignores what was recorded of the run.
func (c *comparison) compareSettings() []Setting {
	a, b := settings(c.sides[0].header), settings(c.sides[1].header)
	all := maps.Clone(a)
	maps.Copy(all, b)
	list := []Setting{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if string(a[path]) != string(b[path]) {
			list = append(list, Setting{path, a[path], b[path]})
		}
	}
	return list
}

// settings returns the leaves of a header by path.
func settings(h *stream.Header) map[string]json.RawMessage {
	header := map[string]any{"tool": h.Tool, "tool_version": h.Version, "slo_classes": h.SLOClasses}
	if run := h.Run; run != nil {
		header["seeds"] = map[string]uint64{"workload": run.Key.WorkloadSeed, "simulation": run.Key.SimSeed,
			"jitter": run.Key.JitterSeed}
		header["workload"] = run.Workload
		header["clairvoyant"] = run.Clairvoyant
		if run.HorizonUS != nil {
			header["horizon_us"] = *run.HorizonUS
		}
		header["config"] = run.Config
	}
	text, err := json.Marshal(header)
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

// flatten adds the leaves of v to leaves, with paths as in blis-sim --set: elements of
// lists are named by their id or name, if they have one. The configuration is the root.
func flatten(v any, path string, leaves map[string]json.RawMessage) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v { // the order does not matter: leaves is a map
			at := key
			if path != "" && path != "config" {
				at = path + "." + key
			}
			flatten(child, at, leaves)
		}
	case []any:
		if !slices.ContainsFunc(v, isTree) {
			leaves[path], _ = json.Marshal(v)
			return
		}
		for i, child := range v {
			flatten(child, path+"."+keyOf(child, i), leaves)
		}
	default:
		leaves[path], _ = json.Marshal(v)
	}
}

// isTree reports whether a value is an object or a list.
func isTree(v any) bool {
	_, object := v.(map[string]any)
	_, list := v.([]any)
	return object || list
}

// keyOf returns the name of an element of a list.
func keyOf(v any, i int) string {
	m, _ := v.(map[string]any)
	for _, name := range []string{"id", "name"} {
		if s, ok := m[name].(string); ok {
			return s
		}
	}
	return fmt.Sprint(i)
}
