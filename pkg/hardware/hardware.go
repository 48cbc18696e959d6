// Package hardware is the catalog of GPUs, of latency coefficients measured on them, and of
// engine defaults: from the built-in files, and from the user's files of the same format. It
// has facts with their sources, and derives nothing from them.
package hardware

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"blis/hardware"
	"blis/pkg/latency"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// Catalog has GPUs and coefficients. It does not change once it is open.
type Catalog struct {
	gpus []*GPU
	sets []*Set
	// names has the GPUs by normalized id, alias and name.
	names map[string]*GPU
	// sources has the texts of the files' source keys, defaults the efficiency of GPUs that do
	// not state theirs.
	sources  map[string]string
	defaults latency.Efficiency
}

// Open reads the built-in files, and then those at paths, in order: of a directory every
// *.yaml, by name. A GPU replaces an earlier one with the same id, coefficients replace those
// for the same model, GPU and parallelism. Errors have file, line and column.
func Open(paths ...string) (*Catalog, error) {
	if len(paths) == 0 {
		return builtInCatalog()
	}
	return load(paths)
}

// builtInCatalog has the built-in files alone; they are read once.
var builtInCatalog = sync.OnceValues(func() (*Catalog, error) { return load(nil) })

func load(paths []string) (*Catalog, error) {
	docs, err := builtIn()
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		own, err := read(p)
		if err != nil {
			return nil, err
		}
		docs = append(docs, own...)
	}
	c := &Catalog{sources: map[string]string{}, names: map[string]*GPU{}}
	files := make([]*File, len(docs))
	for i, doc := range docs {
		files[i] = &File{}
		if err := doc.Decode(files[i]); err != nil {
			return nil, err
		}
		if err := c.addGPUs(files[i], doc); err != nil {
			return nil, err
		}
	}
	// Coefficients may be for a GPU of a later file.
	for i, doc := range docs {
		if err := c.addSets(files[i], doc); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func builtIn() ([]*strictyaml.Doc, error) {
	entries, err := hardware.Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var docs []*strictyaml.Doc
	for _, e := range entries {
		data, err := hardware.Files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		doc, err := strictyaml.Parse(path.Join("hardware", e.Name()), data)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
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
	if g := c.names[normalize(name)]; g != nil {
		return g, nil
	}
	var ids, all []string
	for _, g := range c.gpus {
		ids = append(ids, g.ID)
		all = append(all, g.ID)
		all = append(all, g.Aliases...)
	}
	hint := ""
	if near := registry.Closest(name, all); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, fmt.Errorf("unknown GPU %q%s (have %s, or a file of your own)", name, hint, strings.Join(ids, ", "))
}

func normalize(name string) string {
	return strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name))
}

// GPUs returns all GPUs, in the order of the files.
func (c *Catalog) GPUs() []*GPU { return slices.Clone(c.gpus) }

// Sets returns all coefficients, in the order of the files.
func (c *Catalog) Sets() []*Set { return slices.Clone(c.sets) }

// ReadSets returns the coefficients of one file, which may be for GPUs of the files at
// hardware.
func ReadSets(path string, hardware ...string) ([]*Set, error) {
	docs, err := read(path)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, doc := range docs {
		var f File
		if err := doc.Decode(&f); err != nil {
			return nil, err
		}
		n += len(f.Coefficients)
	}
	c, err := load(append(slices.Clone(hardware), path))
	if err != nil {
		return nil, err
	}
	return c.sets[len(c.sets)-n:], nil
}

// Coefficients returns the coefficients measured for a key, if there are any.
func (c *Catalog) Coefficients(key Key) (*Set, bool) {
	g := c.names[normalize(key.GPU)]
	if g == nil {
		return nil, false
	}
	key.GPU = g.ID
	for _, s := range c.sets {
		if s.Key.same(key) {
			return s, true
		}
	}
	return nil, false
}
