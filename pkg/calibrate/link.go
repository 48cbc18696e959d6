package calibrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
	"blis/pkg/textio"
)

// linkReport is a link fitted to transfers: one takes LatencyUS + bytes / (1000 · GBPerS) µs. Bandwidths are in 10⁹
// bytes a second. MedianErrorPercent is that of the held-out transfers, every second one by size, by a fit to the
// others.
type linkReport struct {
	Transfers          int           `json:"transfers"`
	MinBytes           float64       `json:"min_bytes"`
	MaxBytes           float64       `json:"max_bytes"`
	LatencyUS          float64       `json:"latency_us"`
	LatencyCI          stat.Interval `json:"latency_us_ci"`
	GBPerS             float64       `json:"gb_per_s"`
	GBPerSCI           stat.Interval `json:"gb_per_s_ci"`
	MedianErrorPercent float64       `json:"median_abs_error_percent"`
	Warnings           []string      `json:"warnings,omitempty"`
}

// linkPair is a measured transfer.
type linkPair struct{ bytes, us float64 }

const (
	minLinkPairs = 6
	// minLinkSpread is how many times larger the largest transfer must be than the smallest one: latency and
	// bandwidth are hardly identifiable from sizes that are more alike.
	minLinkSpread = 4
	linkLevel     = 0.9
)

// fitLink fits a link to the table of transfers that o.Link names, with the columns bytes and ms.
func (o *Options) fitLink(out io.Writer) error {
	pairs, err := o.readLink()
	if err != nil {
		return err
	}
	r, err := newLinkReport(pairs)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Link, err)
	}
	for _, w := range r.Warnings {
		o.warn(w)
	}
	if o.Format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	_, err = fmt.Fprintf(out, `# Fitted to %d transfers of %.4g to %.4g bytes.
# Held out, every second transfer by size: median error %.1f %%.
latency_us: %.0f  # 90 %% interval %.0f to %.0f
gb_per_s: %.4g  # 90 %% interval %.4g to %.4g
`, r.Transfers, r.MinBytes, r.MaxBytes, r.MedianErrorPercent, r.LatencyUS, r.LatencyCI.Lo, r.LatencyCI.Hi,
		r.GBPerS, r.GBPerSCI.Lo, r.GBPerSCI.Hi)
	return err
}

func (o *Options) readLink() (pairs []linkPair, err error) {
	in := textio.Input{Name: o.Link, Path: o.Link}
	if o.Link == "-" {
		stdin, err := o.Stdin()
		if err != nil {
			return nil, err
		}
		defer stdin.Close()
		in = textio.Input{Name: "stdin", Stream: stdin}
	}
	t, err := textio.OpenTable(in, "bytes,ms")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	bytes, ms := t.RequireColumn("bytes"), t.RequireColumn("ms")
	if unused := t.UnusedColumns(bytes, ms); t.Err() == nil && len(unused) > 0 {
		return nil, t.Errorf("unknown column %q; must have bytes and ms", unused[0])
	}
	for t.Err() == nil {
		if err := t.Read(); err == io.EOF {
			return pairs, nil
		} else if err != nil {
			return nil, err
		}
		p := linkPair{float64(t.Integer(bytes)), 1000 * t.Time(ms)}
		if t.Err() == nil && !(p.bytes > 0 && p.us > 0) {
			return nil, t.Errorf("bytes and ms must be above 0")
		}
		pairs = append(pairs, p)
	}
	return nil, t.Err()
}

// newLinkReport fits the pairs, with errors relative to the measured times.
func newLinkReport(pairs []linkPair) (*linkReport, error) {
	if len(pairs) < minLinkPairs {
		return nil, fmt.Errorf("has %d transfers; at least %d are needed", len(pairs), minLinkPairs)
	}
	// Where sizes repeat in turn, every second transfer would have few of them.
	pairs = slices.Clone(pairs)
	slices.SortStableFunc(pairs, func(a, b linkPair) int { return cmp.Compare(a.bytes, b.bytes) })
	var all, even, odd leastsq.Regression
	r := &linkReport{Transfers: len(pairs), MinBytes: math.Inf(1)}
	for i, p := range pairs {
		r.MinBytes, r.MaxBytes = min(r.MinBytes, p.bytes), max(r.MaxBytes, p.bytes)
		part := &even
		if i%2 == 1 {
			part = &odd
		}
		for _, to := range []*leastsq.Regression{&all, part} {
			to.Names = []string{"latency_us", "us_per_byte"}
			to.Add(i%10, p.us, 1, p.bytes) // intervals leave out every tenth
		}
	}
	x := all.Fit()
	if x[1] <= 0 {
		return nil, fmt.Errorf("times do not grow with the bytes, so that no bandwidth fits them")
	}
	ci := all.Intervals(x, linkLevel)
	r.LatencyUS, r.LatencyCI = x[0], ci[0]
	r.GBPerS = 1 / (1000 * x[1])
	if r.GBPerS < cluster.MinGBPerS || r.GBPerS > cluster.MaxGBPerS {
		return nil, fmt.Errorf("a bandwidth of %.4g GB/s fits, which is not %g to %g: bytes must be in bytes and ms "+
			"in milliseconds", r.GBPerS, cluster.MinGBPerS, cluster.MaxGBPerS)
	}
	r.GBPerSCI = stat.Interval{Lo: 1 / (1000 * ci[1].Hi), Hi: cluster.MaxGBPerS, Level: linkLevel}
	if lowest := 1 / (1000 * cluster.MaxGBPerS); ci[1].Lo > lowest {
		r.GBPerSCI.Hi = 1 / (1000 * ci[1].Lo)
	}
	errors := odd.Errors(even.Fit())
	for i := range errors {
		errors[i] = 100 * math.Abs(errors[i])
	}
	slices.Sort(errors)
	r.MedianErrorPercent = errors[len(errors)/2]
	if r.MaxBytes < minLinkSpread*r.MinBytes {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the largest transfer is %.2g times the smallest: latency and "+
			"bandwidth are hardly identifiable; measure sizes that differ by %d times or more", r.MaxBytes/r.MinBytes,
			minLinkSpread))
	}
	return r, nil
}
