//go:build unix

package stream

import (
	"os"
	"syscall"
)

// lock locks an open file for this process. It waits while another process has the lock.
func lock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// tryLock is lock, but does not wait: the lock of another process is an error.
func tryLock(f *os.File) error { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// renamesOpen: an open file or folder can be renamed and removed.
const renamesOpen = true
