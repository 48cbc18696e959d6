package gen

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/trace"
)

// maxBuffered bounds the memory for input that cannot be rewound and has to be read twice.
const maxBuffered = 64 << 20

// runImport writes the workload of one or more traces.
func runImport(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	t, err := newMergedTraces(in, o)
	if err != nil {
		return err
	}
	defer t.close()
	switch {
	case t.untimed() && o.Rate != 0:
		t.gapUS = 1e6 / float64(o.Rate)
	case !t.untimed() && (o.Rate != 0 || o.Repeat > 1):
		if err := t.measure(ctx, o); err != nil {
			return err
		}
	}
	if o.TimeScale != 0 {
		t.scale = float64(o.TimeScale)
	}
	if err := t.open(); err != nil {
		return err
	}
	header := &stream.Header{Seed: o.seed(), SpecDigest: o.importDigest()}
	classes, err := t.classes()
	if err != nil {
		return err
	}
	header.SLOClasses = o.classes(classes)
	if err := write(ctx, out, header, t, o); err != nil {
		return err
	}
	o.warn(t.warnings()...)
	return nil
}

// newMergedTraces sets up the inputs that o names without opening them.
func newMergedTraces(in io.Reader, o Options) (*mergedTraces, error) {
	t := &mergedTraces{scale: 1, outputTokens: int64(o.OutputTokens), loops: max(int64(o.Repeat), 1) - 1}
	for at, imp := range o.Import {
		format, err := trace.Formats.Get("importer", imp.Format)
		if err != nil {
			return nil, err
		}
		options := trace.Options{BlockSize: cmp.Or(int64(o.BlockSize), format.BlockSize), Seed: o.seed(),
			EvenlySpaced: o.Rate != 0, OutputTokens: int64(o.OutputTokens),
			SharedPrefix: int64(o.SharedPrefix)}
		i := &input{format: format}
		if len(o.Import) > 1 {
			i.prefix = strconv.Itoa(at+1) + ":"
		}
		source := trace.Input{Name: imp.File, Path: imp.File}
		if imp.isStdin() {
			source.Name, source.Stream = inputName(in), in
			if !format.Recorded {
				source.Path = ""
			}
		}
		i.file = source.Name
		rereads := o.Rate != 0 && !format.Untimed || o.Repeat > 1
		if rereads && isPipe(source.Path) {
			pipe, err := os.Open(source.Path)
			if err != nil {
				return nil, err
			}
			defer pipe.Close()
			source.Path, source.Stream = "", pipe
		}
		rewind := func() error { return nil }
		if rereads && source.Stream != nil {
			seeker, err := rewindable(source.Stream, source.Name)
			if err != nil {
				return nil, err
			}
			source.Stream = seeker
			rewind = func() error {
				_, err := seeker.Seek(0, io.SeekStart)
				return err
			}
		}
		i.reopen = func() (trace.Reader, error) {
			if err := rewind(); err != nil {
				return nil, err
			}
			return format.Open(source, options)
		}
		t.inputs = append(t.inputs, i)
	}
	return t, nil
}

// isPipe reports whether path can be read only once.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// rewindable returns in if it is a regular file, else a reader of its buffered content.
func rewindable(in io.Reader, name string) (io.ReadSeeker, error) {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBuffered+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBuffered {
		return nil, fmt.Errorf("%s: --rate and --repeat read the trace twice and buffer at most %d MiB of a pipe; "+
			"import from a file", name, maxBuffered>>20)
	}
	return bytes.NewReader(data), nil
}

// untimed reports whether no input has arrival times.
func (t *mergedTraces) untimed() bool {
	return !slices.ContainsFunc(t.inputs, func(i *input) bool { return !i.format.Untimed })
}

// inputsWithoutTimes returns the open inputs that turn out to have no arrival times.
func (t *mergedTraces) inputsWithoutTimes() (files []string) {
	for _, i := range t.inputs {
		if r, ok := i.Reader.(trace.HasArrivals); ok && !r.HasArrivals() {
			files = append(files, i.file)
		}
	}
	return files
}

// measure reads all inputs once, unless none of them has arrival times. It sets the scale at which
// the kept arrivals have the mean rate of o, and the period of a pass: from the first to the last
// kept arrival plus one mean gap.
func (t *mergedTraces) measure(ctx context.Context, o Options) error {
	defer func(loops int64) {
		t.close()
		t.loops, t.accepted = loops, 0
	}(t.loops)
	t.loops = 0
	if err := t.open(); err != nil {
		return err
	}
	if untimed := t.inputsWithoutTimes(); len(untimed) == len(t.inputs) && o.Rate != 0 {
		t.gapUS = 1e6 / float64(o.Rate)
		return nil
	} else if len(untimed) > 0 {
		return fmt.Errorf("%s: has no arrival times; --rate can space its requests only if no other input has times",
			untimed[0])
	}
	n, first, last := int64(0), 0.0, 0.0
	err := forEachArrival(ctx, t, o, func(*stream.Arrival) error {
		if n++; n == 1 {
			first = t.us
		}
		last = t.us
		return nil
	})
	if err != nil {
		return err
	}
	if n < 2 || last == first {
		flag := "--rate"
		if o.Rate == 0 {
			flag = "--repeat"
		}
		return fmt.Errorf("%s: %s needs arrivals at two or more different times", t.names(), flag)
	}
	meanGap := (last - first) / float64(n-1)
	t.period = last - first + meanGap
	if o.Rate != 0 {
		t.scale = 1e6 / float64(o.Rate) / meanGap
	}
	return nil
}

func (t *mergedTraces) names() string {
	var names []string
	for _, i := range t.inputs {
		names = append(names, i.file)
	}
	return strings.Join(names, ", ")
}

// classes merges the SLO classes that the inputs declare.
func (t *mergedTraces) classes() ([]stream.SLOClass, error) {
	var all []stream.SLOClass
	for _, i := range t.inputs {
		declares, ok := i.Reader.(trace.HasSLOClasses)
		if !ok {
			continue
		}
		for _, c := range declares.Classes() {
			at := slices.IndexFunc(all, func(other stream.SLOClass) bool { return other.Name == c.Name })
			if at < 0 {
				all = append(all, c)
			} else if all[at] != c {
				return nil, fmt.Errorf("%s: the SLO class %q differs from the class of that name in an earlier input",
					i.file, c.Name)
			}
		}
	}
	return all, nil
}

// importDigest identifies the options of the import. The traces themselves are not part of it:
// their content is known only at the end.
func (o *Options) importDigest() string {
	var formats []string
	for _, i := range o.Import {
		formats = append(formats, i.Format)
	}
	return stream.Digest(struct {
		Import       string   `json:"import"`
		TimeScale    Factor   `json:"time_scale,omitempty"`
		Rate         Factor   `json:"rate,omitempty"`
		BlockSize    Count    `json:"block_size,omitempty"`
		OutputTokens Count    `json:"output_tokens,omitempty"`
		SharedPrefix Count    `json:"shared_prefix,omitempty"`
		Limit        Count    `json:"limit,omitempty"`
		Where        string   `json:"where,omitempty"`
		SLO          []string `json:"slo,omitempty"`
		Loop         Count    `json:"repeat,omitempty"`
		Sample       Share    `json:"sample,omitempty"`
		Seed         *uint64  `json:"seed,omitempty"`
	}{strings.Join(formats, ","), o.TimeScale, o.Rate, o.BlockSize, o.OutputTokens, o.SharedPrefix, o.Limit,
		o.Where.text, o.sloTexts(), o.Repeat, o.Sample, o.Seed})
}
