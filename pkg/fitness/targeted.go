package fitness

import (
	"fmt"
	"strconv"
	"strings"

	"blis/pkg/metrics"
)

// A run must not gain by serving less. Scores, gates and objectives therefore read latencies over the
// offered requests whose class has a target for them (metrics.Targeted). Those that were not served count
// as infinite in percentiles, as long as the run in means, and reduce terms by their share.

// targeted is the part of a path that selects metrics.Targeted.
const targeted = "targeted."

// targetedPath is the path of the latency at path over the offered requests. It is path itself where both
// are the same, for other numbers, and for a percentile of a reference run that is infinite there: a
// reference is only a scale.
func (r *Run) targetedPath(tree, path string) string {
	own := strings.Replace(path, targeted, "", 1)
	at := strings.LastIndexByte(own, '.')
	at = strings.LastIndexByte(own[:max(at, 0)], '.') + 1
	to := own[:at] + targeted + own[at:]
	if _, ok := metrics.LookupPath(to); !ok || isCount(path) && path == own {
		return path
	}
	if !r.has(tree, to[:strings.LastIndexByte(to, '.')]+".count") || tree != ownTree && !r.has(tree, to) {
		return own
	}
	return to
}

// isCount reports whether path is a count or a coverage, not a latency.
func isCount(path string) bool {
	return strings.HasSuffix(path, ".count") || strings.HasSuffix(path, ".coverage")
}

// uncoveredShare is the share of the offered requests that a time of the run itself does not cover: 0 for
// other numbers and for references. It removes the gain of not serving slow requests.
func (r *Run) uncoveredShare(tree, path string) float64 {
	at := coveragePath(path)
	if tree != ownTree || at == "" {
		return 0
	}
	if covered, ok := r.value(tree, at); ok {
		return 1 - covered
	}
	return 0
}

// coveragePath is the path of the coverage of the time at path, "" if that is not a time.
func coveragePath(path string) string {
	cut := strings.LastIndexByte(path, '.')
	if p, _ := metrics.LookupPath(path); p.Missing != metrics.MissingIsWorst || cut < 0 && path != "tail_blowup" {
		return ""
	}
	at := path[:max(cut, 0)] + ".coverage"
	if strings.HasSuffix(path, "tail_blowup") {
		at = strings.TrimSuffix(path, "tail_blowup") + "e2e.coverage"
	}
	if _, ok := metrics.LookupPath(at); !ok {
		return ""
	}
	return at
}

// isInfinite reports whether a percentile, if those that are not covered count as infinite, is. ITL counts
// gaps, not requests.
func isInfinite(path string, uncovered float64) bool {
	cut := strings.LastIndexByte(path, '.')
	digits, ok := strings.CutPrefix(path[cut+1:], "p")
	if path[cut+1:] == "tail_blowup" { // p99/p50
		digits, ok = "99", true
	}
	percent, err := strconv.ParseInt(digits, 10, 64)
	return ok && err == nil && !strings.HasPrefix(path, "itl.") && uncovered > 1-float64(percent)/100
}

// infiniteText says why a latency is infinite.
func infiniteText(name string, uncovered float64) string {
	return fmt.Sprintf("%s is infinite: %s %% of the offered requests have none; served(%[1]s) does not count them",
		name, percentText(uncovered))
}
