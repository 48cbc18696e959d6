package recording

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/textio"
)

// timeColumn is a name of a time column with its unit in µs.
type timeColumn struct {
	name string
	us   float64
}

// The columns of request tables with their alternative names: those of a plain table and those of
// LMBenchmark (github.com/LMCache/LMBenchmark, also in vLLM's production stack: multi-round-qa.py).
var (
	tableArrival = []timeColumn{{"arrival_s", 1e6}, {"arrival_ms", 1e3}, {"arrival_us", 1}, {"launch_time", 1e6}}
	tableTTFT    = []timeColumn{{"ttft_s", 1e6}, {"ttft_ms", 1e3}, {"ttft_us", 1}, {"ttft", 1e6}}
	tableE2E     = []timeColumn{{"e2e_s", 1e6}, {"e2e_ms", 1e3}, {"e2e_us", 1}, {"latency_s", 1e6}, {"latency_ms", 1e3}}
	tableEnd     = []timeColumn{{"finish_time", 1e6}}
	tableInputs  = []string{"input_tokens", "input_length", "prompt_tokens"}
	tableOutputs = []string{"output_tokens", "output_length", "generation_tokens"}
)

// tableColumns lists them for help and errors.
const tableColumns = "arrival_s, input_tokens, output_tokens, ttft_s, e2e_s; optional status or success, request_id, " +
	"stage, tenant, slo_class, model, gpu, tp, replicas, target_qps"

// Indices into setup of columns that describe the server.
const (
	setupRate = iota
	setupReplicas
	setupModel
	setupTP
	setupGPU
)

// setup are the columns that distinguish the runs of a table, with their words in run names, in
// order of preference.
var setup = []struct{ column, word string }{
	setupRate: {"target_qps", "qps"}, setupReplicas: {"replicas", "replicas"}, setupModel: {"model", "model"},
	setupTP: {"tp", "tp"}, setupGPU: {"gpu", "gpu"},
	{"scenario", "scenario"}, {"group", "group"},
}

// ignoredColumns are columns that follow from others.
var ignoredColumns = []string{"tpot_s", "generation_time", "question_id"}

func isLMBench(h *head) bool {
	return h.any("target_qps", "launch_time") && h.any("ttft_s", "ttft")
}

func isTable(h *head) bool {
	return h.any(tableInputs...) && h.any(tableOutputs...) && (h.any(names(tableTTFT)...) || h.any(names(tableE2E)...))
}

// names returns the names of time columns.
func names(columns []timeColumn) (all []string) {
	for _, c := range columns {
		all = append(all, c.name)
	}
	return all
}

// table reads a table of requests.
type table struct {
	*textio.Table
	// Column indices; -1 means absent. The four times have units.
	at, ttft, e2e, end                                       int
	atUS, ttftUS, e2eUS, endUS                               float64
	input, output, id, errorText, stage, tenant, class, user int
	// statuses are the columns that say whether a request completed.
	statuses []int
	setup    []int
	names    fieldNames
	// runs holds the runs in order, keys maps setups to them.
	runs []*rows
	keys map[string]*rows
}

// readTable reads a table of requests: a run for each setup.
func readTable(f *file, r *Recording) error {
	s, err := textio.NewTable(f.Name, f, tableColumns)
	if err != nil {
		return err
	}
	t := &table{Table: s, keys: map[string]*rows{}}
	if err := t.find(); err != nil {
		return err
	}
	if err := forEachRow(s, "requests", t.row); err != nil {
		return err
	}
	f.Warn(s.Warnings()...)
	if r.Runs, err = t.finish(); err != nil {
		return err
	}
	nameRuns(r.Runs, t.words())
	return nil
}

// find looks up the columns.
func (t *table) find() (err error) {
	for _, c := range []struct {
		names []timeColumn
		at    *int
		us    *float64
	}{{tableArrival, &t.at, &t.atUS}, {tableTTFT, &t.ttft, &t.ttftUS}, {tableE2E, &t.e2e, &t.e2eUS},
		{tableEnd, &t.end, &t.endUS}} {
		if *c.at, *c.us, err = t.columnOfTime(c.names); err != nil {
			return err
		}
	}
	if t.input, err = t.RequireColumn(tableInputs...); err != nil {
		return err
	}
	if t.output, err = t.RequireColumn(tableOutputs...); err != nil {
		return err
	}
	if t.ttft < 0 {
		if _, err = t.RequireColumn(names(tableTTFT)...); err != nil {
			return err
		}
	}
	if t.e2e < 0 && (t.end < 0 || t.at < 0) {
		if _, err = t.RequireColumn(names(tableE2E)...); err != nil {
			return err
		}
	}
	t.id, t.errorText, t.stage = t.Column("request_id", "id", "request_index"), t.Column("error", "error_message"),
		t.Column("stage")
	t.tenant, t.class, t.user = t.Column("tenant"), t.Column("slo_class"), t.Column("session", "user_id")
	used := []int{t.at, t.ttft, t.e2e, t.end, t.input, t.output, t.id, t.errorText, t.stage, t.tenant, t.class, t.user}
	for _, name := range []string{"status", "status_code", "success"} {
		if at := t.Column(name); at >= 0 {
			t.statuses, used = append(t.statuses, at), append(used, at)
		}
	}
	for _, c := range setup {
		at := t.Column(c.column)
		t.setup, used = append(t.setup, at), append(used, at)
	}
	for _, name := range ignoredColumns {
		used = append(used, t.Column(name))
	}
	if others := t.UnusedColumns(used...); len(others) > 0 {
		t.Warnf("unknown columns are ignored: %s", strings.Join(others, ", "))
	}
	t.names = fieldNames{t.Header[t.input], t.Header[t.output], t.Header[t.ttft], t.Header[max(t.e2e, t.end)]}
	return nil
}

// columnOfTime returns the index of a time column and its unit in µs.
func (t *table) columnOfTime(columns []timeColumn) (at int, us float64, err error) {
	at = -1
	for _, c := range columns {
		i := t.Column(c.name)
		if i >= 0 && at >= 0 {
			return 0, 0, t.Errorf("has both %s and %s; remove one of them", t.Header[at], c.name)
		}
		if i >= 0 {
			at, us = i, c.us
		}
	}
	return at, us, nil
}

// row reads the next row into its run.
func (t *table) row() error {
	if err := t.Read(); err != nil {
		return err
	}
	c := newRequest()
	if err := t.Integers([]int{t.input}, &c.InputTokens); err != nil {
		return err
	}
	c.ID, c.Tenant, c.SLOClass, c.Session = t.Value(t.id), t.Value(t.tenant), t.Value(t.class), t.Value(t.user)
	if err := t.times(&c); err != nil {
		return err
	}
	if err := c.check(&t.Position, t.names); err != nil {
		return err
	}
	var own []string
	for _, at := range t.setup {
		own = append(own, strings.Clone(t.Value(at)))
	}
	key := strings.Join(own, "\x00")
	run := t.keys[key]
	if run == nil {
		run = &rows{setup: own}
		t.keys[key] = run
		t.runs = append(t.runs, run)
	}
	run.add(c, strings.Clone(t.Value(t.stage)))
	return nil
}

// completedWords are the status values of completed requests.
var completedWords = []string{"", "ok", "success", "succeeded", "completed", "200", "200.0", "true"}

// noError are the values of error columns that mean no error.
var noError = []string{"", "none", "null", "nan"}

// failure returns why the request of the current row failed, "" if it completed.
func (t *table) failure() string {
	if fault := t.Value(t.errorText); !slices.Contains(noError, strings.ToLower(fault)) {
		return fault
	}
	for _, at := range t.statuses {
		name, status := strings.ToLower(t.Header[at]), t.Value(at)
		switch {
		case slices.Contains(completedWords, strings.ToLower(status)), name == "success" && status == "1":
		case name == "status":
			return status
		default:
			return name + " is " + status
		}
	}
	return ""
}

// times reads the times of the current row.
func (t *table) times(c *request) error {
	c.at = 0
	if t.at >= 0 {
		at, err := t.Time(t.at)
		if err != nil {
			return err
		}
		c.at = at * t.atUS
	}
	if failure := t.failure(); failure != "" {
		var err error
		c.OutputTokens, err = t.Optional(t.output)
		c.fail(failure)
		return err
	}
	var output int64
	if err := t.Integers([]int{t.output}, &output); err != nil {
		return err
	}
	c.complete(output)
	if t.Value(t.ttft) != "" { // otherwise it was not streamed
		ttft, err := t.Time(t.ttft)
		if err != nil {
			return err
		}
		c.first = c.at + ttft*t.ttftUS
	}
	if t.e2e < 0 {
		end, err := t.Time(t.end)
		c.last = end * t.endUS
		return err
	}
	e2e, err := t.Time(t.e2e)
	c.last = c.at + e2e*t.e2eUS
	return err
}

// words returns the words that distinguish the runs.
func (t *table) words() (all [][]string) {
	for _, run := range t.runs {
		var own []string
		for k, c := range setup {
			own = append(own, c.word+"="+run.setup[k])
		}
		all = append(all, own)
	}
	return all
}

// finish returns the runs.
func (t *table) finish() (runs []*Run, err error) {
	for _, rows := range t.runs {
		run := &Run{Clock: clientClock, Arrivals: t.at >= 0}
		if err := run.applySetup(rows.setup, &textio.Position{Name: t.Name}); err != nil {
			return nil, err
		}
		if err := rows.finish(run, t.Name); err != nil {
			return nil, err
		}
		if !run.Arrivals {
			run.warnf("%s", noArrivalsWarning)
		}
		run.warnUnstreamed(countUnstreamed(rows.requests))
		if run.Arrivals {
			run.warnDuplicates()
		}
		if t.e2e >= 0 && t.e2eUS == 1e6 {
			run.warnSlow(t.inMS())
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// inMS returns the names that the time columns would have in ms.
func (t *table) inMS() string {
	name := func(at int) string { return strings.TrimSuffix(t.Header[at], "_s") + "_ms" }
	if t.ttftUS != 1e6 {
		return name(t.e2e)
	}
	return name(t.ttft) + " and " + name(t.e2e)
}

// applySetup sets the server setup from the values of a row, in the order of setup.
func (r *Run) applySetup(values []string, p *textio.Position) error {
	r.Model, r.GPU = values[setupModel], values[setupGPU]
	for _, n := range []struct {
		at   int
		into *int
	}{{setupReplicas, &r.Replicas}, {setupTP, &r.TensorParallel}} {
		text := values[n.at]
		if text == "" {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 {
			return p.Errorf("%s must be an integer of at least 1, is %q", setup[n.at].column, text)
		}
		*n.into = v
	}
	if text := values[setupRate]; text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate >= 0) {
			return p.Errorf("%s must be a number of at least 0, is %q", setup[setupRate].column, text)
		}
		if !math.IsInf(rate, 0) {
			r.TargetRPS = rate
		}
	}
	return nil
}
