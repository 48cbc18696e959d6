package summarize

import (
	"fmt"
	"regexp"
	"strings"
)

// mostCharacters is the most that a consumer shows of one artifact.
const mostCharacters = 1950

// artifacts are the texts of the document.
func (r *report) artifacts(d *Document) Artifacts {
	a := Artifacts{Feedback: r.headline(d), Score: r.scoreText(d)}
	var lines []string
	for i := range d.Anomalies {
		lines = append(lines, episodeText(&d.Anomalies[i]))
	}
	a.Anomalies = presentable(strings.Join(lines, "\n"))
	return a
}

// headline says what the run is worth, or why it is worth nothing.
func (r *report) headline(d *Document) string {
	if d.Status == statusError {
		return presentable(fmt.Sprintf("score 0.0000: it does not load\n%s", d.Error))
	}
	lines := []string{fmt.Sprintf("score %.4f", *d.CombinedScore)}
	first := d.Candidates[0].Runs[0]
	if first.Baseline != nil {
		lines[0] += fmt.Sprintf("; baseline %.4f", *first.Baseline)
	}
	if first.Parent != nil {
		lines[0] += fmt.Sprintf("; parent %.4f", *first.Parent)
	}
	return presentable(strings.Join(append(lines, r.scoreText(d)), "\n"))
}

// scoreText lists gates and terms.
func (r *report) scoreText(d *Document) string {
	if d.Fitness == nil {
		return ""
	}
	var lines []string
	for _, g := range d.Fitness.Gates {
		word := "passed"
		if !g.Passed {
			word = fmt.Sprintf("FAILED by %.4f", g.Distance)
		}
		lines = append(lines, fmt.Sprintf("gate %s %s: %s", g.Name, word, g.Detail))
	}
	for _, t := range d.Fitness.Terms {
		lines = append(lines, fmt.Sprintf("term %s: weight %.4f, value %.4f, ideal %.4f, lost %.4f", t.Name, t.Weight, t.Value, t.Ideal, t.Lost))
	}
	return presentable(strings.Join(lines, "\n"))
}

// What the consumers' filters take for secrets and would cut out.
var (
	secret = regexp.MustCompile(`(?i)(token)[=:](\s*\S)`)
	digits = regexp.MustCompile(`[A-Za-z0-9]{32,}`)
)

// presentable is a text as consumers take it: ASCII, no line beginning with '#', nothing
// that their filters take for a secret, and not longer than they show. It is cut
// behind a line.
func presentable(text string) string {
	var lines []string
	size := 0
	for _, line := range strings.Split(text, "\n") {
		line = digits.ReplaceAllStringFunc(ascii(line), func(s string) string { return s[:12] + ".." })
		line = strings.TrimLeft(secret.ReplaceAllString(line, "$1 $2"), "#")
		if room := mostCharacters - size; len(line) > room {
			if len(lines) == 0 {
				lines = append(lines, line[:room])
			}
			break
		}
		lines = append(lines, line)
		size += len(line) + 1
	}
	return strings.Join(lines, "\n")
}
