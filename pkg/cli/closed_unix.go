//go:build unix

package cli

import (
	"io"
	"os"
	"syscall"
)

// mayBeClosed reports whether stdout may have been closed when the process began. Before any code of a program
// runs, Go's runtime opens the null device for reading and writing in place of a closed stream; shells open it
// only for writing. Other programs may open it for both, so that this is no proof.
func mayBeClosed(stdout io.Writer) bool {
	f, ok := stdout.(*os.File)
	if !ok {
		return false
	}
	flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
	opened, err := f.Stat()
	null, missing := os.Stat(os.DevNull)
	return failed == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR && err == nil && missing == nil &&
		os.SameFile(opened, null)
}
