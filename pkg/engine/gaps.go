package engine

import (
	"slices"
	"sort"

	"blis/pkg/des"
)

// Gaps are the times between a request's tokens, in µs.
type Gaps struct {
	// Max is the longest, 0 if there was none.
	Max des.Time
	// List holds every gap in order, equal neighbours once with their number.
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

// gapLog remembers the length of steady steps, so that the gaps of a sequence
// that was steady from one tick to another are found without visiting it at
// each.
type gapLog struct {
	keep bool
	// peaks are the steps that no later one was longer than: the first of them
	// behind a tick is the longest since.
	peaks []tickGap
	// all are all steps, from tick first on; only where keep.
	all   []des.Time
	first int64
	// limit is how many of them there are when it is asked which are needed, at
	// least least.
	limit, least int
}

// minLog is how many steps are kept before it is asked which are needed.
const minLog = 1 << 12

type tickGap struct {
	tick int64
	gap  des.Time
}

// add notes that the step that ended tick was gap long.
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

// collect adds to g the gaps of the ticks after since up to last, which is the
// newest there is.
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

// full reports whether it is time to forget.
func (l *gapLog) full() bool { return len(l.all) > l.limit }

// forget drops what no steady sequence needs, those being steady since tick
// since or later.
func (l *gapLog) forget(since int64) {
	if drop := since + 1 - l.first; drop > 0 && int64(len(l.all)) >= drop {
		l.all = slices.Delete(l.all, 0, int(drop))
		l.first += drop
	}
	l.limit = max(l.least, 2*len(l.all))
}
