// Package hardware is the catalog of GPUs, and of latency coefficients measured on them: from
// the built-in files, and from the user's files of the same format. It has facts with their
// sources, and derives nothing from them.
package hardware

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/latency"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

//go:generate go test -run TestBuiltInIsCurrent . -update

// Catalog has GPUs and coefficients. It does not change once it is open.
type Catalog struct {
	gpus []*GPU
	sets []*Set
	// sources has the texts of the files' source keys, defaults the efficiency of GPUs that do
	// not state theirs.
	sources  map[string]string
	defaults latency.Efficiency
}

// Open returns the built-in catalog with the files at paths, in order: of a directory every
// *.yaml, by name. A GPU replaces an earlier one with the same id, coefficients replace those
// for the same model, GPU and parallelism. Errors have file, line and column.
func Open(paths ...string) (*Catalog, error) {
	c := builtIn()
	_, err := c.add(paths)
	return c, err
}

// ReadSets returns the coefficients of one file, which may be for GPUs of the files at
// hardware.
func ReadSets(path string, hardware ...string) ([]*Set, error) {
	return builtIn().add(append(slices.Clone(hardware), path))
}

// add adds the files at paths to the catalog and returns the coefficients of the last path.
func (c *Catalog) add(paths []string) (last []*Set, err error) {
	var docs []*strictyaml.Doc
	n := 0 // files before those of the last path
	for _, p := range paths {
		more, err := read(p)
		if err != nil {
			return nil, err
		}
		n, docs = len(docs), append(docs, more...)
	}
	files := make([]File, len(docs))
	for i, doc := range docs {
		if err := doc.Decode(&files[i]); err != nil {
			return nil, err
		}
		if err := c.addGPUs(&files[i], doc); err != nil {
			return nil, err
		}
	}
	if len(docs) > 0 {
		for _, s := range c.sets { // a file may spell an id differently
			s.GPU = c.find(s.GPU, nil).ID
		}
	}
	// Coefficients may be for a GPU of a later file.
	for i, doc := range docs {
		if err := c.addSets(&files[i], doc); err != nil {
			return nil, err
		}
		if i >= n {
			last = append(last, files[i].Coefficients...)
		}
	}
	return last, nil
}

// read parses a file, or those of a directory.
func read(name string) ([]*strictyaml.Doc, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	if info.IsDir() {
		entries, err := os.ReadDir(name) // by name
		if err != nil {
			return nil, err
		}
		names = nil
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".yaml" {
				names = append(names, filepath.Join(name, e.Name()))
			}
		}
		if names == nil {
			return nil, fmt.Errorf("%s: has no *.yaml", name)
		}
	}
	var docs []*strictyaml.Doc
	for _, n := range names {
		doc, err := strictyaml.Read(n)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// GPU returns the GPU with an id, alias or name. Letter case does not matter, and spaces and
// underscores match hyphens.
func (c *Catalog) GPU(name string) (*GPU, error) {
	if g := c.find(name, nil); g != nil {
		return g, nil
	}
	var ids, all []string
	for _, g := range c.gpus {
		ids = append(ids, g.ID)
		all = append(append(all, g.ID), g.Aliases...)
	}
	return nil, fmt.Errorf("unknown GPU %q%s (have %s, or a file of your own)", name, registry.Hint(name, all),
		strings.Join(ids, ", "))
}

// find returns the GPU with an id, alias or name, except one; nil if there is none.
func (c *Catalog) find(name string, except *GPU) *GPU {
	name = normalize(name)
	isIt := func(own string) bool { return own != "" && normalize(own) == name }
	for _, g := range c.gpus {
		if g != except && (isIt(g.ID) || isIt(g.Name) || slices.ContainsFunc(g.Aliases, isIt)) {
			return g
		}
	}
	return nil
}

var hyphens = strings.NewReplacer(" ", "-", "_", "-")

func normalize(name string) string {
	return strings.TrimPrefix(hyphens.Replace(strings.ToLower(name)), "nvidia-")
}

// GPUs returns all GPUs, in the order of the files.
func (c *Catalog) GPUs() []*GPU { return slices.Clone(c.gpus) }

// Sets returns all coefficients, in the order of the files.
func (c *Catalog) Sets() []*Set { return slices.Clone(c.sets) }
