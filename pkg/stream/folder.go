package stream

import (
	"errors"
	"os"
	"path/filepath"
)

// Folder is an output folder that appears under its name only when it is complete: its files are written in a
// temporary folder next to it, which Commit renames.
type Folder struct {
	path string
	temp *os.File
}

// CreateFolder begins the folder at path, which must not exist. The caller ends it with Commit or Close.
func CreateFolder(path string) (*Folder, error) {
	path = filepath.Clean(path)
	temp, err := createTemp(path, func(name string) (*os.File, error) {
		if err := os.Mkdir(name, 0o777); err != nil {
			return nil, err
		}
		return os.Open(name)
	})
	if err != nil {
		return nil, err
	}
	return &Folder{path, temp}, nil
}

// Name is the name of the temporary folder.
func (f *Folder) Name() string { return f.temp.Name() }

// Commit gives the folder its final name. On error it removes the folder.
func (f *Folder) Commit() error {
	var err error
	if !renamesOpen {
		err = f.temp.Close()
	}
	if err == nil {
		err = complete(f.Name(), f.path)
	}
	if err != nil {
		err = errors.Join(err, discard(f.Name()))
	}
	return errors.Join(err, closeOnce(f.temp))
}

// Close removes the folder. It must not follow Commit.
func (f *Folder) Close() error { return errors.Join(discard(f.Name()), f.temp.Close()) }
