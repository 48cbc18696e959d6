package gen

import (
	"bytes"
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

// maxBuffered is how much of a trace that cannot be rewound is kept in memory
// where it must be read twice.
const maxBuffered = 64 << 20

// runImport writes the workload of traces.
func runImport(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	t, err := newTraces(in, o)
	if err != nil {
		return err
	}
	defer t.close()
	switch {
	case t.untimed() && o.Rate != 0:
		t.space(o.Rate)
	case !t.untimed() && (o.Rate != 0 || o.Loop > 1):
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
	header := &stream.Header{SpecDigest: o.importDigest()}
	if o.Seed != nil {
		header.Seed = *o.Seed
	}
	if header.SLOClasses, err = t.classes(); err != nil {
		return err
	}
	if err := write(ctx, out, header, t, o); err != nil {
		return err
	}
	if o.Warn != nil {
		for _, odd := range t.warnings() {
			o.Warn(odd)
		}
	}
	return nil
}

// newTraces makes the inputs that o names, not yet open.
func newTraces(in io.Reader, o Options) (*traces, error) {
	t := &traces{scale: 1, outputTokens: int64(o.OutputTokens), loops: max(int64(o.Loop), 1) - 1}
	for at, imp := range o.Import {
		format, err := trace.Formats.Get("importer", imp.Format)
		if err != nil {
			return nil, err
		}
		options := trace.Options{BlockSize: int64(o.BlockSize), Spaced: o.Rate != 0, OutputTokens: int64(o.OutputTokens)}
		if format.BlockSize != 0 && options.BlockSize == 0 {
			options.BlockSize = format.BlockSize
		}
		if o.Seed != nil {
			options.Seed = *o.Seed
		}
		i := &input{format: format}
		if len(o.Import) > 1 {
			i.prefix = strconv.Itoa(at+1) + ":"
		}
		whence := trace.Input{Name: imp.File, Path: imp.File}
		if imp.isStdin() {
			whence.Name, whence.Stream = inputName(in), in
			if !format.Recorded {
				whence.Path = ""
			}
		}
		i.file = whence.Name
		i.reopen = func() (trace.Reader, error) { return format.Open(whence, options) }
		if again := o.Rate != 0 && !format.Untimed || o.Loop > 1; again && isPipe(whence.Path) {
			pipe, err := os.Open(whence.Path)
			if err != nil {
				return nil, err
			}
			defer pipe.Close()
			in, whence.Stream = pipe, pipe
		}
		if whence.Stream != nil && (o.Rate != 0 && !format.Untimed || o.Loop > 1) {
			again, err := rewindable(in, whence.Name)
			if err != nil {
				return nil, err
			}
			i.reopen = func() (trace.Reader, error) {
				if _, err := again.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				anew := trace.Input{Name: whence.Name, Stream: again}
				if format.Recorded && imp.isStdin() {
					anew.Path = whence.Path
				}
				return format.Open(anew, options)
			}
		}
		t.inputs = append(t.inputs, i)
	}
	return t, nil
}

// isPipe reports whether path is nothing that can be read twice.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// rewindable returns in if it is a regular file, else its content.
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
		return nil, fmt.Errorf("%s: --rate and --loop read the trace twice and keep at most %d MiB of a pipe; import from a file", name, maxBuffered>>20)
	}
	return bytes.NewReader(data), nil
}

// untimed reports whether no input says when its arrivals are.
func (t *traces) untimed() bool {
	return !slices.ContainsFunc(t.inputs, func(i *input) bool { return !i.format.Untimed })
}

// space lets arrivals come evenly, so many a second.
func (t *traces) space(rate Factor) { t.spaceUS = 1e6 / float64(rate) }

// foundUntimed names the inputs, which are open, in which arrivals turn out to have
// no times.
func (t *traces) foundUntimed() (files []string) {
	for _, i := range t.inputs {
		if r, ok := i.Reader.(trace.Timed); ok && !r.Timed() {
			files = append(files, i.file)
		}
	}
	return files
}

// measure reads all inputs once, unless none of them turns out to have times. It finds what to multiply times by so that the
// mean gap of the arrivals kept is 1/rate, and by how much one pass comes later
// than the one before: what is kept lasts as long as from the first to the last,
// and a mean gap.
func (t *traces) measure(ctx context.Context, o Options) error {
	loops := t.loops
	t.loops = 0
	if err := t.open(); err != nil {
		return err
	}
	if untimed := t.foundUntimed(); len(untimed) == len(t.inputs) && o.Rate != 0 {
		t.close()
		t.loops = loops
		t.space(o.Rate)
		return nil
	} else if len(untimed) > 0 {
		t.close()
		return fmt.Errorf("%s: does not say when requests arrived: --rate can space them only without others beside it", untimed[0])
	}
	n, first, last := int64(0), 0.0, 0.0
	err := each(ctx, t, o, func(*stream.Arrival) error {
		if n++; n == 1 {
			first = t.us
		}
		last = t.us
		return nil
	})
	t.close()
	t.loops, t.accepted = loops, 0
	if err != nil {
		return err
	}
	if n < 2 || last == first {
		flag := "--rate"
		if o.Rate == 0 {
			flag = "--loop"
		}
		return fmt.Errorf("%s: %s needs arrivals at two different times at least", t.names(), flag)
	}
	meanGap := (last - first) / float64(n-1)
	t.period = last - first + meanGap
	if o.Rate != 0 {
		t.scale = 1e6 / float64(o.Rate) / meanGap
	}
	return nil
}

func (t *traces) names() string {
	var names []string
	for _, i := range t.inputs {
		names = append(names, i.file)
	}
	return strings.Join(names, ", ")
}

// classes are the SLO classes that the inputs declare.
func (t *traces) classes() ([]stream.SLOClass, error) {
	var all []stream.SLOClass
	for _, i := range t.inputs {
		declares, ok := i.Reader.(trace.Classed)
		if !ok {
			continue
		}
		for _, c := range declares.Classes() {
			at := slices.IndexFunc(all, func(have stream.SLOClass) bool { return have.Name == c.Name })
			if at < 0 {
				all = append(all, c)
			} else if all[at] != c {
				return nil, fmt.Errorf("%s: the SLO class %q is not the one that an input before it declares", i.file, c.Name)
			}
		}
	}
	return all, nil
}

// importDigest identifies what is done to traces; the traces themselves are
// known only at their end.
func (o *Options) importDigest() string {
	var formats []string
	for _, i := range o.Import {
		formats = append(formats, i.Format)
	}
	return stream.Digest(struct {
		Import       string  `json:"import"`
		TimeScale    Factor  `json:"time_scale,omitempty"`
		Rate         Factor  `json:"rate,omitempty"`
		BlockSize    Count   `json:"block_size,omitempty"`
		OutputTokens Count   `json:"output_tokens,omitempty"`
		Limit        Count   `json:"limit,omitempty"`
		Where        string  `json:"where,omitempty"`
		Loop         Count   `json:"loop,omitempty"`
		Sample       Share   `json:"sample,omitempty"`
		Seed         *uint64 `json:"seed,omitempty"`
	}{strings.Join(formats, ","), o.TimeScale, o.Rate, o.BlockSize, o.OutputTokens, o.Limit, o.Where.text, o.Loop, o.Sample, o.Seed})
}
