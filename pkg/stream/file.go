package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is an output file that appears under its name only when it is complete:
// it is written to a temporary file in the same folder, which Commit renames.
// Anything but a regular file (a pipe, /dev/stdout) is written directly.
type File struct {
	*os.File
	// path is the final name; "" if the file is written directly.
	path string
	done bool
}

// Create begins the file at path. The caller ends it with Commit or Close. It
// keeps the permissions of a file that it replaces and follows symbolic links.
func Create(path string) (*File, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	var mode fs.FileMode
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a file", path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{File: f}, nil
	default:
		mode = info.Mode().Perm()
	}
	temp, err := createTemp(path, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	})
	if err != nil {
		return nil, err
	}
	f := &File{File: temp, path: path}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Commit writes the file to the disk, closes it and gives it its final name. On error it removes the file.
func (f *File) Commit() error {
	if f.done || f.path == "" {
		return f.Close()
	}
	f.done = true
	// After a crash of the machine, the name must not be that of an empty file.
	err := f.Sync()
	if err == nil && !renamesOpen {
		err = f.File.Close()
	}
	if err == nil {
		err = complete(f.Name(), f.path)
	}
	if err != nil {
		err = errors.Join(err, discard(f.Name()))
	}
	return errors.Join(err, closeOnce(f.File))
}

// closeOnce closes f unless it is closed.
func closeOnce(f *os.File) error {
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Close without Commit removes the temporary file and leaves an earlier file of that name
// untouched. After Commit or Close it does nothing, so it can be deferred.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	if f.path == "" {
		return f.File.Close()
	}
	return errors.Join(discard(f.Name()), f.File.Close())
}
