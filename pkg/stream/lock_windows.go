package stream

import (
	"errors"
	"os"
)

// lock does nothing: open files are not locked on Windows, and what a killed process left stays.
func lock(*os.File) error { return nil }

// tryLock fails, so that no temporary file counts as abandoned.
func tryLock(*os.File) error { return errors.ErrUnsupported }

// renamesOpen: an open file or folder can be renamed and removed.
const renamesOpen = false
