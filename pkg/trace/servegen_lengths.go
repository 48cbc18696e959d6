package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/limits"
	"blis/pkg/registry"
	"blis/pkg/textio"
)

// The fields of a dataset: prompt tokens, each with its optional count, and ignored fields.
var (
	promptFields = []struct{ tokens, number string }{
		{"input_tokens", ""}, {"text_tokens", ""}, {"image_tokens", "image_count"}, {"audio_tokens", "audio_count"},
		{"video_tokens", "video_count"}}
	ignoredFields = []string{"reason_ratio"}
)

// maxMedia bounds the images and other media in one prompt.
const maxMedia = 10_000

// readLengths reads the windows of a dataset, in order of time. A window with an empty distribution
// is left out.
func readLengths(p *textio.Position, in io.Reader) ([]lengths, error) {
	var dataset map[string]map[string]string
	if err := json.NewDecoder(limits.NewReader(in, "the file", limits.Document)).Decode(&dataset); err != nil {
		return nil, p.Errorf("%s", textio.JSONMessage(err))
	}
	var all []lengths
	for _, start := range slices.Sorted(maps.Keys(dataset)) { // sorted for reproducible errors
		at, err := strconv.ParseFloat(start, 64)
		if err != nil || !(at >= 0) {
			return nil, p.Errorf("a window must be named by its start in s, not %q", start)
		}
		l, full, err := readWindowLengths(dataset[start])
		if err != nil {
			return nil, p.Errorf("window %s: %v", start, err)
		}
		if l.start = at; full {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b lengths) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}

// readWindowLengths reads the distributions of one window; full says that none of them is empty.
func readWindowLengths(fields map[string]string) (l lengths, full bool, err error) {
	names := slices.Clone(ignoredFields)
	full = true
	read := func(name string) (empirical, bool) {
		names = append(names, name)
		text, present := fields[name]
		if !present || err != nil {
			return empirical{}, false
		}
		e, bad := parseEmpirical(text)
		if bad != nil {
			err = fmt.Errorf("%s: %w", name, bad)
		}
		full = full && len(e.values) > 0
		return e, true
	}
	for _, f := range promptFields {
		tokens, present := read(f.tokens)
		p := tokenKind{tokens: tokens}
		if f.number != "" {
			p.count, _ = read(f.number)
			if n := p.count.values; err == nil && len(n) > 0 && slices.Max(n) > maxMedia {
				err = fmt.Errorf("%s: a prompt has at most %d, not %d", f.number, maxMedia, slices.Max(n))
			}
		}
		if present {
			l.input = append(l.input, p)
		}
	}
	output, present := read("output_tokens")
	if l.output = output; err == nil && (!present || len(l.input) == 0) {
		err = errors.New("output_tokens and input_tokens or text_tokens must be given")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err == nil && !slices.Contains(names, name) {
			err = registry.Unknown("field", name, names)
		}
	}
	return l, full, err
}

// empirical is a measured distribution of integers.
type empirical struct {
	values  []int32
	weights dist.Weights
}

// parseEmpirical reads {value: weight, …}, a dictionary printed by Python.
func parseEmpirical(text string) (e empirical, err error) {
	inside, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	if ok {
		inside, ok = strings.CutSuffix(inside, "}")
	}
	if !ok {
		return e, fmt.Errorf("must be {value: weight, …}, is %.40q", text)
	}
	if inside = strings.TrimSpace(inside); inside == "" {
		return e, nil
	}
	for entry := range strings.SplitSeq(inside, ",") {
		value, weight, _ := strings.Cut(entry, ":")
		v, bad := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
		if bad != nil || v < 0 {
			return e, fmt.Errorf("a value must be an integer of at least 0, is %.40q", strings.TrimSpace(value))
		}
		w, bad := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		if bad != nil || !(w >= 0 && w <= 1e9) {
			return e, fmt.Errorf("the weight of %d must be a number of at least 0, is %.40q", v,
				strings.TrimSpace(weight))
		}
		e.values = append(e.values, int32(v))
		e.weights.Add(w)
	}
	if e.weights[len(e.weights)-1] == 0 {
		return e, fmt.Errorf("the weights add up to 0")
	}
	return e, nil
}

// draw draws a value; there must be one.
func (e *empirical) draw(r *rand.Rand) int64 { return int64(e.values[e.weights.Index(r.Float64())]) }
