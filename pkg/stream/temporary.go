package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// maxTemporaries is the number of processes that can write one path at a time.
const maxTemporaries = 100

// temporaries are the files and folders that this process has not completed.
var temporaries = struct {
	sync.Mutex
	names map[string]bool
	// removed is true once the process ends: no output is completed after that.
	removed bool
}{names: map[string]bool{}}

// RemoveTemporaries removes all outputs that are not committed, and makes later commits fail. It is for a
// process that ends at once.
func RemoveTemporaries() {
	temporaries.Lock()
	defer temporaries.Unlock()
	temporaries.removed = true
	for name := range temporaries.names {
		os.RemoveAll(name)
	}
}

// createTemp creates a new file or folder next to path, and opens it. Until it is closed it is locked, so that
// later writers of path recognize what a killed process left. They remove it here.
func createTemp(path string, create func(name string) (*os.File, error)) (*os.File, error) {
	var created *os.File
	folder, base := filepath.Split(path)
	for i := range maxTemporaries {
		name := fmt.Sprintf("%s.%s.%d.tmp", folder, base, i)
		if removeAbandoned(name); created != nil {
			continue
		}
		f, err := create(name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			if failed := new(fs.PathError); errors.As(err, &failed) {
				failed.Path = path // the name that the user gave
			}
			return nil, err
		}
		if lock(f) != nil || isNamed(f, name) { // a file system may have no locks
			created = f
			remember(name)
		} else {
			f.Close() // another process saw it before it was locked, and removed it
		}
	}
	if created == nil {
		return nil, fmt.Errorf("%s: %d other processes write this file", path, maxTemporaries)
	}
	return created, nil
}

// remember adds a temporary file or folder to those that a signal removes.
func remember(name string) {
	temporaries.Lock()
	defer temporaries.Unlock()
	temporaries.names[name] = true
}

// removeAbandoned removes a temporary file or folder that no process has locked.
func removeAbandoned(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if tryLock(f) == nil && isNamed(f, name) {
		os.RemoveAll(name)
	}
}

// isNamed reports whether name is that of the open file or folder f.
func isNamed(f *os.File, name string) bool {
	opened, err := f.Stat()
	named, missing := os.Lstat(name)
	return err == nil && missing == nil && os.SameFile(opened, named)
}

// complete gives a temporary file or folder, whose content is on the disk, its final name.
func complete(name, path string) error {
	temporaries.Lock()
	defer temporaries.Unlock()
	if temporaries.removed {
		return errors.New("the process ends")
	}
	delete(temporaries.names, name)
	return os.Rename(name, path)
}

// discard removes a temporary file or folder.
func discard(name string) error {
	temporaries.Lock()
	defer temporaries.Unlock()
	delete(temporaries.names, name)
	return os.RemoveAll(name)
}
