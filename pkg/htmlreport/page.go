// Package htmlreport writes runs as one HTML file with figures, which needs no network.
//
// Package figures computes what the figures show. The numbers of the table are those of the metrics. Equal runs give
// equal bytes. Vega-Lite draws the figures in the browser, as SVG.
package htmlreport

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"blis/pkg/figures"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

//go:embed assets
var assets embed.FS

// Run is one run of a report.
type Run struct {
	Name string
	// Collector has taken all records of the run.
	Collector *figures.Collector
	// Metrics are nil if the run has none; Err says why.
	Metrics *metrics.Raw
	Err     string
	// Workload identifies the workload; runs with the same one are compared request by request.
	Workload string
	// Text explains the run, in sections.
	Text []Section
	// Facts identify it: names and values.
	Facts [][2]string
	// Anomalies are episodes of problems.
	Anomalies []stream.Anomaly
	Warnings  []string
}

// Section is a part of a text with its name.
type Section struct{ Name, Text string }

// MaxRuns is the maximum number of runs of a report.
const MaxRuns = 8

// Measured reports whether the run is a recording of a real server.
func (r *Run) Measured() bool { return r.Collector != nil && r.Collector.Measured() }

// Kind says what the run is.
func (r *Run) Kind() string {
	if r.Measured() {
		return "recording of a real server"
	}
	return "simulation"
}

// headline is the name of the section that the report shows first.
const headline = "HEADLINE"

// Headline returns the lines of the section HEADLINE.
func (r *Run) Headline() []string {
	for _, s := range r.Text {
		if s.Name == headline {
			return strings.Split(strings.TrimSpace(s.Text), "\n")
		}
	}
	return nil
}

// Rest returns the other sections with a text.
func (r *Run) Rest() (rest []Section) {
	for _, s := range r.Text {
		if s.Name == "ANOMALIES" && len(r.Anomalies) > 0 { // they have a table
			continue
		}
		if s.Name != headline && s.Name != "" && strings.TrimSpace(s.Text) != "" {
			rest = append(rest, s)
		}
	}
	return rest
}

// ReplicaTable returns the rows of the table of replicas, at most figures.ReplicasShown.
func (r *Run) ReplicaTable() []metrics.Replica {
	if r.Metrics == nil {
		return nil
	}
	return r.Metrics.Replicas[:min(len(r.Metrics.Replicas), figures.ReplicasShown)]
}

// page is what the template shows.
type page struct {
	Runs    []*Run
	Numbers []numberRow
	// Tiles are the numbers at the top.
	Tiles []numberRow
	// Data are the figures as JSON.
	Data    template.JS
	Scripts []template.JS
	Style   template.CSS
	Notice  string
}

// data is what the script reads.
type data struct {
	Permilles []int64        `json:"permilles"`
	Runs      []*figures.Run `json:"runs"`
	// Intervals are the confidence intervals of the numbers of each run, by path.
	Intervals []map[string][2]float64 `json:"intervals"`
	Changes   []change                `json:"changes"`
}

// tiles are the paths of the numbers at the top.
var tiles = []string{"goodput.ratio", "ttft.p50", "ttft.p99", "tpot.p50", "e2e.p50", "throughput.rps",
	"kv.prefix_hit_ratio", "cost.gpu_s"}

// Write writes the report of 1 to MaxRuns runs. The others are compared with the first.
func Write(w io.Writer, runs []*Run) error {
	if len(runs) == 0 || len(runs) > MaxRuns {
		return fmt.Errorf("htmlreport: %d runs, not 1 to %d", len(runs), MaxRuns)
	}
	p := page{Runs: runs, Numbers: numbersOf(runs)}
	for _, path := range tiles {
		for _, n := range p.Numbers {
			if n.Path == path {
				p.Tiles = append(p.Tiles, n)
			}
		}
	}
	d := data{Permilles: figures.Permilles, Changes: changes(runs, p.Numbers)}
	for i, r := range runs {
		if r.usable() {
			d.Runs = append(d.Runs, r.Collector.Run(r.Name, len(runs)))
			d.Intervals = append(d.Intervals, intervalsOf(p.Numbers, i))
		}
	}
	text, err := json.Marshal(d) // escapes <, > and &
	if err != nil {
		return err
	}
	p.Data = template.JS(text)
	for _, name := range []string{"vega.min.js", "vega-lite.min.js", "figures.js", "report.js"} {
		p.Scripts = append(p.Scripts, template.JS(asset(name)))
	}
	p.Style, p.Notice = template.CSS(asset("report.css")), asset("NOTICE")
	t, err := template.New("report").Funcs(functions).Parse(asset("report.html"))
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// asset returns an embedded file. A missing one is a bug.
func asset(name string) string {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("htmlreport: " + err.Error())
	}
	return string(text)
}

var functions = template.FuncMap{
	"percent": func(x *float64) string {
		return cell{Value: x, percent: true}.Text()
	},
	"seconds": func(t stream.Micros) string {
		x := float64(t) / 1e6
		return cell{Value: &x}.Text()
	},
	"number": func(n int64) string {
		x := float64(n)
		return cell{Value: &x}.Text()
	},
	"title": func(name string) string {
		return cmp.Or(strings.ToUpper(name[:min(len(name), 1)])+strings.ToLower(name[min(len(name), 1):]), name)
	},
}
