package strictyaml

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Merge sets entries of the mapping at path: each of the given keys gets the value that it has in the mapping at over,
// completed at any depth by what the mapping at base has. Values keep their positions and the settings that they are
// of.
func (d *Doc) Merge(path, over, base string, keys ...string) {
	for _, key := range keys {
		if value := d.merged(d.find(over+"."+key), d.find(base+"."+key)); value != nil {
			d.body = d.replace(d.body, keysIn(path+"."+key), value, nil)
		}
	}
}

// keysIn are the keys of a path whose keys contain no dots.
func keysIn(path string) []string {
	return strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

// merged returns a value completed by another one.
func (d *Doc) merged(value, base ast.Node) ast.Node {
	if value == nil {
		return base
	}
	own, isMapping := untagged(value).(*ast.MappingNode)
	if !isMapping || base == nil {
		return value
	}
	result := ast.Node(own)
	for _, entry := range expandMerges(untagged(base)) {
		key := entry.Key.GetToken().Value
		before := child(own, key)
		if after := d.merged(before, entry.Value); after != before {
			copied := withEntry(result, key, after)
			d.origins.inherit(result, copied, nil)
			result = copied
		}
	}
	return result
}
