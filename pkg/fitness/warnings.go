package fitness

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// sampleWarnings report percentiles in expressions that have too few samples, and times that do not cover all
// requests.
func (f *Fitness) sampleWarnings(r *Run) (warnings []string) {
	seen := map[string]bool{}
	for name, at := range reads(append([]expression{f.scoreExpression()}, f.expressions()...)...) {
		tree, path := splitName(name)
		path = r.targetedPath(tree, path)
		if cut := strings.LastIndexByte(path, '.'); cut > 0 && !seen[tree+path] && !isCount(path) {
			seen[tree+path] = true
			warnings = append(warnings, r.sampleWarnings(name, tree, path[:cut], path[cut+1:],
				at.of.path == "score")...)
		}
	}
	return warnings
}

// sampleWarnings are those about one statistic of the distribution at path; score says whether the score
// reads it.
func (r *Run) sampleWarnings(name, tree, path, statistic string, score bool) (warnings []string) {
	count, ok := r.value(tree, path+".count")
	if !ok {
		return nil
	}
	percent := map[string]int64{"p50": 50, "p90": 90, "p95": 95, "p99": 99}[statistic]
	if needs := metrics.MinSamples(percent); percent > 0 && count < float64(needs) {
		warnings = append(warnings, fmt.Sprintf("%s has %.0f samples and needs %d", name, count, needs))
	}
	covered, ok := r.value(tree, path+".coverage")
	if !ok || tree != ownTree {
		return warnings
	}
	if all, _ := r.value(tree, strings.Replace(path, targeted, "", 1)+".count"); strings.Contains(path, targeted) &&
		math.Round(count*covered) < all {
		warnings = append(warnings, fmt.Sprintf("%s is that of the %.0f offered requests whose class has a target "+
			"for it", name, count))
	}
	if covered < fullCoverage && r.has(tree, path+"."+statistic) && !isInfinite(path+"."+statistic, 1-covered) {
		effect := "the others do not count here"
		if score {
			effect = "its terms are multiplied by that share"
		}
		warnings = append(warnings, fmt.Sprintf("%s covers %s %% of the offered requests: %s", name,
			percentText(covered), effect))
	}
	return warnings
}

// fullCoverage is the share of the offered requests below which a time has a warning.
const fullCoverage = 0.99

// cheapTerms are metrics that improve when less is served or when the work is moved elsewhere.
var cheapTerms = []struct{ part, why string }{
	{"queue.", "it begins at the queue of the replica: admission delays and flow control before it do not count, " +
		"but they do in ttft"},
	{"cost.", "it falls if less is served"},
	{"energy.", "it falls if less is served"},
	{"prefix_hit_ratio", "it rises if requests without cached prefixes are not served"},
}

// cheapWarnings report what the score and the objectives read that a policy can improve without serving
// anybody better. A gate on what is served prevents that, except for delays before the queue.
func (f *Fitness) cheapWarnings() (warnings []string) {
	served := f.hasServedGate()
	for name := range reads(append([]expression{f.scoreExpression()}, f.objectives...)...) {
		tree, path := splitName(name)
		path = "." + metrics.WildcardPath(path)
		for i, t := range cheapTerms {
			if tree == ownTree && strings.Contains(path, "."+t.part) && (i == 0 || !served) {
				warnings = append(warnings, fmt.Sprintf("%s is easy to improve: %s", name, t.why))
			}
		}
	}
	return warnings
}

// hasServedGate reports whether a gate reads how many requests completed, were rejected or met their targets.
func (f *Fitness) hasServedGate() bool {
	for name := range reads(f.gates...) {
		if tree, path := splitName(name); tree == ownTree && (strings.HasPrefix(path, "requests.") ||
			strings.HasPrefix(path, "goodput.") || path == "admission_rate") {
			return true
		}
	}
	return false
}

// untargetedWarnings report that requests without targets, which do not count in m.goodput.ratio, are not
// served, and no gate notices.
func (f *Fitness) untargetedWarnings(r *Run) []string {
	if f.hasServedGate() || !slices.Contains(f.MetricPaths(), attainmentPath) {
		return nil
	}
	lost, all := 0.0, 0.0
	for _, c := range r.judgedClasses {
		offered, _ := r.value(ownTree, metrics.SubPath("cls", c.Name)+".requests.offered")
		completed, _ := r.value(ownTree, metrics.SubPath("cls", c.Name)+".requests.completed")
		if all += offered; c.Targets == (stream.Targets{}) {
			lost += offered - completed
		}
	}
	if lost <= (1-fullCoverage)*all {
		return nil
	}
	return []string{fmt.Sprintf("%.0f requests of classes without targets were not served, and m.goodput.ratio does "+
		"not count them; a gate does: m.requests.completed >= m.requests.offered + m.requests.not_issued", lost)}
}

// percentText is a share in percent with three digits.
func percentText(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) }
