package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// startPercent lets the heap grow to 16 MiB before garbage is collected for the first time, four times Go's default.
const startPercent = 400

// delayGarbageCollection makes calls that need little memory shorter: half of the processor time of a start was
// collections of a heap of 4 MiB. Go's default holds after the first collection, so that runs that need much memory
// take no more than with it. The environment variable GOGC overrides both.
func delayGarbageCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(startPercent)
	runtime.AddCleanup(new([32]byte), func(usual int) {
		if now := debug.SetGCPercent(usual); now != startPercent {
			debug.SetGCPercent(now) // a tool has set its own
		}
	}, 100)
}
