package summarize

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/figures"
	"blis/pkg/htmlreport"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// checkPlot checks the flags --plot and --svg.
func (o *Options) checkPlot() error {
	if o.Plot == "" {
		if o.SVG != "" {
			return fmt.Errorf("--svg writes the figure of --plot: add --plot with one of %s",
				strings.Join(figures.Charts.Names(), ", "))
		}
		return nil
	}
	_, err := figures.Charts.Get("figure", o.Plot)
	switch {
	case err != nil:
		return fmt.Errorf("--plot: %w", err)
	case o.Format != "text":
		return fmt.Errorf("--plot has no format %s: it is a text, and --svg FILE.svg writes it as SVG", o.Format)
	case o.Explain.IsSet():
		return errors.New("--plot and --explain each print something else: give one of them")
	case o.SVG != "" && !strings.HasSuffix(o.SVG, ".svg"):
		return fmt.Errorf("--svg %s: the name must end in .svg", o.SVG)
	case len(o.streams()) > htmlreport.MaxRuns:
		return fmt.Errorf("--plot shows at most %d runs; there are %d", htmlreport.MaxRuns, len(o.streams()))
	}
	return nil
}

// figureFlag is the flag that asks for figures.
func (o *Options) figureFlag() string {
	if o.HTML != "" {
		return "--html"
	}
	return "--plot"
}

// plot renders the figure of --plot and writes it to the file of --svg.
func (r *analysis) plot(error) ([]byte, error) {
	var runs []*figures.Run
	for _, x := range r.runs {
		collector := x.collector()
		if x.err != nil || len(collector.Rows()) == 0 {
			return nil, fmt.Errorf("%s has no requests to plot", x.name)
		}
		runs = append(runs, collector.Run(x.name, len(r.runs)))
	}
	draw, err := figures.Charts.Get("figure", r.options.Plot)
	if err != nil {
		return nil, err
	}
	c, err := draw(runs)
	if err != nil {
		return nil, fmt.Errorf("--plot %s: %w", r.options.Plot, err)
	}
	text, err := c.Text(r.options.Width, r.options.Color)
	if err != nil || r.options.SVG == "" {
		return []byte(text), err
	}
	file, err := stream.Create(r.options.SVG)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := c.SVG(file); err != nil {
		return nil, err
	}
	return []byte(text), file.Commit()
}

// collector returns what has the records of the run for figures.
func (x *runDoc) collector() *figures.Collector {
	at := slices.IndexFunc(x.watchers, func(w watcher) bool { _, ok := w.(*figureWatcher); return ok })
	return x.watchers[at].(*figureWatcher).Collector
}

// figureWatcher collects the records of one run for figures.
type figureWatcher struct {
	*figures.Collector
	of *summary
}

// Record takes the current record. Streams without requests that happened are errors.
func (h *figureWatcher) Record(r *stream.Reader, o *stream.Outcome) error {
	switch r.Kind() {
	case stream.KindHeader:
		if r.Header().Stream == stream.StreamWorkload {
			return r.Errorf("%s shows runs and recordings; this is a workload", h.of.options.figureFlag())
		}
		if h.of.minimal() {
			return r.Errorf("the run was written with --trace minimal and has no outcomes; "+
				"%s needs --trace decisions, or full for KV blocks over time", h.of.options.figureFlag())
		}
		header := *r.Header()
		if f := h.of.fitness; f != nil {
			header.SLOClasses = f.Classes(header.SLOClasses)
		}
		h.Collector = figures.NewCollector(&header)
	case stream.KindOutcome:
		return h.outcome(r, o)
	}
	if n := h.of.narrative; n != nil { // it has read these already
		switch r.Kind() {
		case stream.KindDecision:
			h.Collector.Decision(&n.decision)
			return nil
		case stream.KindRegret:
			h.Collector.Regret(&n.regret)
			return nil
		}
	}
	return h.Collector.Record(r)
}

// outcome takes an outcome if it is selected.
func (h *figureWatcher) outcome(r *stream.Reader, o *stream.Outcome) error {
	options, met := h.of.options, o.SLOMet
	if options.isPartial() {
		if !options.inTimeRange(o.Began()) {
			return nil
		}
		if options.Where.matches != nil {
			if selected, err := options.Where.matches(o); err != nil || !selected {
				return err
			}
		}
	}
	if h.of.computed != nil {
		met = metrics.SLOMet(o, h.of.computed.Targets(o.SLOClass))
	}
	h.Collector.Outcome(o, met)
	return nil
}
