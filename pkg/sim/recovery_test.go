package sim

import "testing"

// TestRecovery: all of 100 requests a second meet their targets, except those from 100 to 110 s, after a failure at
// 95 s. 60 of 6,000 in a window of 60 s may miss them: it has 61 until 169.38 s.
func TestRecovery(t *testing.T) {
	const s = 1_000_000
	r := &recovery{}
	for ms := int64(10); ms < 300_000; ms += 10 {
		if ms == 95_000 || ms == 250_000 {
			r.fail(ms * 1000)
		}
		r.add(ms*1000, ms < 100_000 || ms >= 110_000)
	}
	r.end(300 * s)
	if want := int64(169_380_000 - 95*s); r.failures != 2 || r.us != want || r.lasting != 0 {
		t.Errorf("%d failures, %d µs, %d lasting, want 2, %d, 0", r.failures, r.us, r.lasting, want)
	}
	r = &recovery{}
	r.add(1*s, true)
	r.fail(2 * s)
	r.add(3*s, false)
	r.fail(4 * s) // not recovered from the first
	r.add(5*s, true)
	r.end(6 * s)
	if r.failures != 2 || r.us != 2*s+2*s || r.lasting != 2 {
		t.Errorf("%d failures, %d µs, %d lasting, want 2, 4 s, 2", r.failures, r.us, r.lasting)
	}
	if ms := r.meanMS(); ms == nil || *ms != 2000 {
		t.Errorf("the mean is %v, want 2 s", ms)
	}
	r = &recovery{}
	r.fail(2 * s)
	r.end(6 * s)
	if ms := r.meanMS(); r.failures != 1 || ms != nil {
		t.Errorf("without targets: %d failures, the mean is %v", r.failures, ms)
	}
}
