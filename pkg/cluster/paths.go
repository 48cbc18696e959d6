package cluster

import (
	"path/filepath"
	"strings"

	"blis/pkg/limits"
	"blis/pkg/model"
)

// path returns the path of the file or folder that the configuration calls name at the path at. A relative name is
// relative to the folder of the cluster file. Unless paths are allowed, what the file names must be below its
// folder; an override of the command line is the user's own.
func (s *source) path(at, name string) (string, error) {
	return limits.Path(s.dir, name, s.allowPaths || s.isTyped(at))
}

// isTyped reports whether the command line states the value at a path.
func (s *source) isTyped(at string) bool {
	set := s.doc.SetBy(at)
	return set != nil && set.File == ""
}

// model finds the architecture that model_config names: a file or folder, else a built-in model. A name on the command
// line is relative to the working directory, like those that shells complete.
func (s *source) model(at, name string) (*model.Architecture, error) {
	if at = strings.TrimSuffix(at, ".prefill") + ".model_config"; s.isTyped(at) {
		return model.Find(name, name)
	}
	path, err := s.path(at, name)
	if err == nil && filepath.Base(path) == "config.json" { // the quantization may be in a file next to it
		_, err = s.path(at, filepath.Join(filepath.Dir(name), "hf_quant_config.json"))
	}
	if err != nil {
		return nil, err
	}
	return model.Find(path, name)
}
