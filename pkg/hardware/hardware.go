// Package hardware knows GPUs, coefficients that were measured on them, and what
// engines do by default: from the built-in files of package hardware, and from
// files of the user's own in the same form. It holds facts, with their sources;
// what follows from them is for others to say.
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

// Catalog is what is known. It does not change once it is open.
type Catalog struct {
	gpus []*GPU
	sets []*Set
	// names has the GPUs by folded id, alias and name.
	names map[string]*GPU
	// sources has the texts that the files' keys stand for, and defaults the
	// efficiency of GPUs that do not state theirs.
	sources  map[string]string
	defaults latency.Efficiency
}

// Open reads the built-in files, and then those at paths, in order: of a
// directory every *.yaml, by name. A GPU replaces one with its id from an
// earlier file, coefficients those for the same model, GPU and parallelism.
// Errors say file, line and column.
func Open(paths ...string) (*Catalog, error) {
	if len(paths) == 0 {
		return builtInAlone()
	}
	return load(paths)
}

// builtInAlone is what most want: it is read once.
var builtInAlone = sync.OnceValues(func() (*Catalog, error) { return load(nil) })

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
	// Coefficients may be of a GPU that a later file describes.
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

// GPU returns the GPU with an id, an alias or a name, whatever their case; a
// space or an underscore is as good as a hyphen.
func (c *Catalog) GPU(name string) (*GPU, error) {
	if g := c.names[fold(name)]; g != nil {
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

func fold(name string) string {
	return strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name))
}

// GPUs returns all GPUs, in the order of the files.
func (c *Catalog) GPUs() []*GPU { return slices.Clone(c.gpus) }

// Sets returns all coefficients, in the order of the files.
func (c *Catalog) Sets() []*Set { return slices.Clone(c.sets) }

// ReadSets returns the coefficients that one file has, which may be of GPUs of the
// files at hardware.
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

// Coefficients returns the coefficients that were measured for exactly what key
// says, if there are any.
func (c *Catalog) Coefficients(key Key) (*Set, bool) {
	g := c.names[fold(key.GPU)]
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
