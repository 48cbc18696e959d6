package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// The first collection is later than usual, the others are not. What a tool or GOGC sets, stays.
func TestDelayGarbageCollection(t *testing.T) {
	const usual = 100
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(usual)
		debug.SetGCPercent(now)
		return now
	}
	// afterCollections waits until a collection has had its effects.
	afterCollections := func() int {
		seen := make(chan bool)
		runtime.AddCleanup(new([64]byte), func(seen chan bool) { close(seen) }, seen)
		for i := 0; ; i++ {
			runtime.GC()
			select {
			case <-seen:
				time.Sleep(10 * time.Millisecond) // cleanups that were queued with this one
				return percent()
			case <-time.After(10 * time.Millisecond):
				if i > 1000 {
					t.Fatal("nothing was collected")
				}
			}
		}
	}

	t.Setenv("GOGC", "")
	delayGarbageCollection()
	if p := percent(); p != startPercent {
		t.Errorf("before the first collection: %d, want %d", p, startPercent)
	}
	if p := afterCollections(); p != usual {
		t.Errorf("after it: %d, want %d", p, usual)
	}
	delayGarbageCollection()
	debug.SetGCPercent(gcPercent)
	if p := afterCollections(); p != gcPercent {
		t.Errorf("a tool's own setting became %d, want %d", p, gcPercent)
	}
	debug.SetGCPercent(usual)
	t.Setenv("GOGC", "50")
	delayGarbageCollection()
	if p := percent(); p != usual {
		t.Errorf("with GOGC: %d, want %d", p, usual)
	}
}
