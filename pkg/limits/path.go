package limits

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// outsideError says that a file names another one that it may not name.
type outsideError struct {
	// Name is the name in the file, and Target the file that it means.
	Name, Target string
}

func (e *outsideError) Error() string {
	return fmt.Sprintf("%q is %s, which is outside of the folder of this file, and a file from elsewhere must not "+
		"read yours: copy it into the folder, or, if you trust this file, call with --allow-paths or set "+
		"BLIS_ALLOW_PATHS=1",
		e.Name, e.Target)
}

// Path returns the path of the file or folder that a file in the folder dir calls name, which may not exist. Unless
// it may be anywhere, it must be below dir, and so must be everything in it, also where symbolic links
// lead; otherwise the error is an *outsideError.
func Path(dir, name string, anywhere bool) (string, error) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	if anywhere {
		return path, nil
	}
	return path, below(dir, path, name)
}

// below checks that path, which a file in the folder dir calls name, is below dir.
func below(dir, path, name string) error {
	root, err := real(dir)
	if err != nil {
		return err
	}
	target, err := real(path)
	if errors.Is(err, fs.ErrNotExist) { // also a link to nothing
		return isBelow(dir, path, name)
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(target, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at != target && entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if at, err = real(at); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return cmp.Or(err, isBelow(root, at, name))
	})
}

// isBelow returns an *outsideError, about name, unless target is below root.
func isBelow(root, target, name string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if target, err = filepath.Abs(target); err != nil {
		return err
	}
	if relative, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(relative) {
		return &outsideError{name, target}
	}
	return nil
}

// real returns the absolute path without symbolic links.
func real(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
