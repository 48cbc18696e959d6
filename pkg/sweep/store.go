package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"blis/pkg/stream"
)

// store is a folder of finished runs by what determines them. Sweeps that are killed, or run on several machines,
// can share it: a result appears by one rename, and two writers of a result write the same bytes.
type store struct {
	folder string
	// runs: the streams of the runs are kept, too.
	runs bool
}

// stored is the content of a result file.
type stored struct {
	ID       string          `json:"id"`
	Metrics  json.RawMessage `json:"metrics,omitempty"`
	Stopped  *Stopped        `json:"stopped,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

// openStore creates the folder if it does not exist.
func openStore(folder string, runs bool) (*store, error) {
	return &store{folder, runs}, os.MkdirAll(folder, 0o777)
}

func (s *store) file(id, suffix string) string { return filepath.Join(s.folder, id+suffix) }

// load returns the result with this id, nil if there is none, or if its run is to be kept and was not.
func (s *store) load(id string) (*stored, error) {
	if s.runs {
		if _, err := os.Stat(s.file(id, ".jsonl.zst")); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	name := s.file(id, ".json")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(stored)
	if err := json.Unmarshal(text, r); err != nil || r.ID != id {
		return nil, fmt.Errorf("%s is damaged: remove it, and its run is repeated", name)
	}
	return r, nil
}

// save writes a result. Its run must be there, if it is to be kept.
func (s *store) save(r *stored) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	return s.write(s.file(r.ID, ".json"), func(out io.Writer) error {
		_, err := out.Write(text)
		return err
	})
}

// write creates a file that appears when it is complete.
func (s *store) write(name string, content func(io.Writer) error) error {
	f, err := stream.Create(name)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Commit()
}
