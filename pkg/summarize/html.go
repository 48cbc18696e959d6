package summarize

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/htmlreport"
	"blis/pkg/report"
	"blis/pkg/stream"
)

// checkHTML checks the flag --html.
func (o *Options) checkHTML() error {
	switch {
	case o.HTML == "":
		return nil
	case !strings.HasSuffix(o.HTML, ".html"):
		return fmt.Errorf("--html %s: the name must end in .html", o.HTML)
	case len(o.streams()) > htmlreport.MaxRuns:
		return fmt.Errorf("--html shows at most %d runs; there are %d", htmlreport.MaxRuns, len(o.streams()))
	}
	return nil
}

// writeHTML writes the report to the file of --html.
func (r *analysis) writeHTML() error {
	file, err := stream.Create(r.options.HTML)
	if err != nil {
		return err
	}
	defer file.Close()
	var runs []*htmlreport.Run
	for _, x := range r.runs {
		runs = append(runs, r.htmlRun(x))
	}
	if err := htmlreport.Write(file, runs); err != nil {
		return err
	}
	return file.Commit()
}

// htmlRun is what the report shows of a run.
func (r *analysis) htmlRun(x *runDoc) *htmlreport.Run {
	h := &htmlreport.Run{Name: x.name, Metrics: x.raw, Warnings: x.warnings, Facts: x.facts(), Anomalies: x.anomalies}
	h.Collector = x.collector()
	if x.err != nil {
		h.Err, h.Metrics = x.err.Error(), nil
		return h
	}
	h.Warnings = slices.Concat(x.warnings, x.raw.Warnings)
	if x.end != nil {
		h.Workload = x.end.WorkloadDigest
	}
	if h.Workload == "" { // unknown: that of no other run
		h.Workload = "of " + x.name
	}
	if x.narrative != nil && x.findings != nil && x.candidate.result != nil {
		for _, s := range report.Sections(r.input(x.candidate, x), &r.options.Report) {
			h.Text = append(h.Text, htmlreport.Section{Name: s.Name, Text: withoutTitle(s.Text)})
		}
	}
	return h
}

// withoutTitle removes the line with the name of a section.
func withoutTitle(text string) string {
	if title, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(title, "[") {
		return rest
	}
	return text
}

// facts identify the run.
func (x *runDoc) facts() (all [][2]string) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, [2]string{name, value})
		}
	}
	id := x.identity()
	if id == nil {
		return nil
	}
	add("written by", strings.TrimSpace(id.Tool+" "+id.Version))
	if h := x.header.Recording; h != nil {
		add("model", h.Model)
		add("GPU", h.GPU)
		add("engine", h.Engine)
		add("clock", h.Clock)
	}
	if h := x.header.Run; h != nil {
		add("trace", h.Trace)
	}
	add("configuration", id.ConfigDigest)
	add("policies", id.PolicyDigest)
	add("workload", id.WorkloadDigest)
	add("workload spec", id.SpecDigest)
	for _, seed := range []struct {
		name  string
		value *uint64
	}{{"workload seed", id.WorkloadSeed}, {"simulation seed", id.SimSeed}, {"jitter seed", id.JitterSeed}} {
		if seed.value != nil {
			add(seed.name, fmt.Sprint(*seed.value))
		}
	}
	if part := x.selection(); part != nil {
		add("selection", part.text())
	}
	return all
}
