package engine

import (
	"slices"
	"sort"

	"blis/pkg/des"
)

// Gaps are the times between a request's tokens, in µs.
type Gaps struct {
	// Max is the longest gap, 0 if there is none.
	Max des.Time
	// List holds every gap in order as pairs of length and count; equal neighbors are merged.
	List [][2]int64
}

func (g *Gaps) add(gap des.Time, n int64, keep bool) {
	g.Max = max(g.Max, gap)
	if !keep {
		return
	}
	if last := len(g.List) - 1; last >= 0 && g.List[last][0] == gap {
		g.List[last][1] += n
	} else {
		g.List = append(g.List, [2]int64{gap, n})
	}
}

// gapLog records the gaps of decode steps, so that the gaps of a sequence that decoded from one
// tick to another are found without visiting it at each tick.
type gapLog struct {
	keep bool
	// peaks holds the steps that no later step exceeds: the first one after a tick is the longest since
	// then.
	peaks []tickGap
	// all holds all steps from tick first on; empty unless keep.
	all   []des.Time
	first int64
	// The log is trimmed when it has more than limit steps; limit is at least minLimit.
	limit, minLimit int
}

// minGapLog is the number of steps that are logged before the first trim.
const minGapLog = 1 << 12

type tickGap struct {
	tick int64
	gap  des.Time
}

// add records that the step that ended at tick had this gap.
func (l *gapLog) add(tick int64, gap des.Time) {
	n := len(l.peaks)
	for n > 0 && l.peaks[n-1].gap <= gap {
		n--
	}
	l.peaks = append(l.peaks[:n], tickGap{tick, gap})
	if l.keep {
		if len(l.all) == 0 {
			l.first = tick
		}
		l.all = append(l.all, gap)
	}
}

// collect adds to g the gaps of the ticks after since up to last, the newest one.
func (l *gapLog) collect(g *Gaps, since, last int64) {
	if last <= since {
		return
	}
	if l.keep {
		for t := since + 1; t <= last; t++ {
			g.add(l.all[t-l.first], 1, true)
		}
		return
	}
	i := sort.Search(len(l.peaks), func(i int) bool { return l.peaks[i].tick > since })
	g.Max = max(g.Max, l.peaks[i].gap)
}

// full reports whether the log should be trimmed.
func (l *gapLog) full() bool { return len(l.all) > l.limit }

// trim drops the steps up to tick since, which no decoding sequence needs.
func (l *gapLog) trim(since int64) {
	if drop := since + 1 - l.first; drop > 0 && int64(len(l.all)) >= drop {
		l.all = slices.Delete(l.all, 0, int(drop))
		l.first += drop
	}
	l.limit = max(l.minLimit, 2*len(l.all))
}
