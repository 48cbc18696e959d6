package recording

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// The columns of request tables with their alternative names: those of a plain table and those of
// LMBenchmark (github.com/LMCache/LMBenchmark, also in vLLM's production stack: multi-round-qa.py).
var (
	tableArrival = []string{"arrival_s", "arrival_ms", "arrival_us", "launch_time"}
	tableTTFT    = []string{"ttft_s", "ttft_ms", "ttft_us", "ttft"}
	tableE2E     = []string{"e2e_s", "e2e_ms", "e2e_us", "latency_s", "latency_ms"}
	tableInputs  = []string{"input_tokens", "input_length", "prompt_tokens"}
	tableOutputs = []string{"output_tokens", "output_length", "generation_tokens"}
)

// tableColumns lists them for help and errors.
const tableColumns = "arrival_s, input_tokens, output_tokens, ttft_s, e2e_s; optional state, status or success, " +
	"request_id, shared_prefix_tokens, stage, tenant, slo_class, model, gpu, tp, replicas, target_qps"

// setup are the columns that distinguish the runs of a table, in order of preference in run names.
var setup = []string{"target_qps", "replicas", "model", "tp", "gpu", "scenario", "group"}

// ignoredColumns are columns that follow from others.
var ignoredColumns = []string{"tpot_s", "generation_time", "question_id"}

// outcomeLatencies are the columns of blis-sim's tables of outcomes that are no fields of outcomes.
var outcomeLatencies = []string{"ttft_ms", "tpot_ms", "e2e_ms", "queue_ms"}

// isOutcomeColumn reports whether blis-sim writes the column in tables of outcomes.
func isOutcomeColumn(name string) bool {
	if slices.Contains(outcomeLatencies, name) {
		return true
	}
	outcome := reflect.TypeFor[stream.Outcome]()
	for i := range outcome.NumField() {
		if field, _, _ := strings.Cut(outcome.Field(i).Tag.Get("json"), ","); field == name {
			return true
		}
	}
	return false
}

func isLMBench(h *head) bool {
	return h.any("target_qps", "launch_time") && h.any("ttft_s", "ttft")
}

func isTable(h *head) bool {
	return h.any(tableInputs...) && h.any(tableOutputs...) && (h.any(tableTTFT...) || h.any(tableE2E...))
}

// table reads a table of requests.
type table struct {
	*textio.Table
	// Column indices; -1 means absent.
	at, ttft, e2e, end                                       int
	input, output, id, errorText, stage, tenant, class, user int
	prefix                                                   int
	// How a request ended, why and when, in a table of blis-sim.
	state, reason, ended int
	// statuses are the columns that say whether a request completed.
	statuses []int
	setup    []int
	names    fieldNames
	// runs holds the runs in order, keys maps setups to them.
	runs []*tableRun
	keys map[string]*tableRun
}

// tableRun collects the requests of one run. setup holds its values of the columns in setup.
type tableRun struct {
	setup    map[string]string
	requests []request
}

// readTable reads a table of requests: a run for each setup.
func readTable(f *file, r *Recording) error {
	s, err := textio.NewTable(f.Name, f, tableColumns)
	if err != nil {
		return err
	}
	t := &table{Table: s, keys: map[string]*tableRun{}}
	t.find()
	if err := forEachRow(s, "requests", t.row); err != nil {
		return err
	}
	f.Warn(s.Warnings()...)
	var words [][]string
	for _, rows := range t.runs {
		run, err := t.run(rows)
		if err != nil {
			return err
		}
		var own []string
		for _, column := range setup {
			own = append(own, strings.TrimPrefix(column, "target_")+"="+rows.setup[column])
		}
		r.Runs, words = append(r.Runs, run), append(words, own)
	}
	nameRuns(r.Runs, words)
	return nil
}

// find looks up the columns.
func (t *table) find() {
	t.at, t.ttft = t.TimeColumn(tableArrival...), t.TimeColumn(tableTTFT...)
	t.e2e, t.end = t.TimeColumn(tableE2E...), t.Column("finish_time")
	t.input, t.output = t.RequireColumn(tableInputs...), t.RequireColumn(tableOutputs...)
	t.RequireColumn(tableTTFT...)
	if t.end < 0 || t.at < 0 {
		t.RequireColumn(tableE2E...)
	}
	if t.Err() != nil {
		return
	}
	t.id, t.errorText, t.stage = t.Column("request_id", "id", "request_index"), t.Column("error", "error_message"),
		t.Column("stage")
	t.tenant, t.class, t.user = t.Column("tenant"), t.Column("slo_class"), t.Column("session", "user_id")
	t.prefix = t.Column("shared_prefix_tokens")
	t.state, t.reason, t.ended = t.Column("state"), t.Column("reason"), t.TimeColumn("ended_us", "ended_ms", "ended_s")
	used := []int{t.state, t.reason, t.ended, t.at, t.ttft, t.e2e, t.end, t.input, t.output, t.id, t.errorText, t.stage,
		t.tenant, t.class, t.user}
	for _, name := range []string{"status", "status_code", "success"} {
		if at := t.Column(name); at >= 0 {
			t.statuses = append(t.statuses, at)
		}
	}
	for _, column := range setup {
		t.setup = append(t.setup, t.Column(column))
	}
	used = slices.Concat(used, []int{t.prefix}, t.statuses, t.setup)
	for _, name := range ignoredColumns {
		used = append(used, t.Column(name))
	}
	others := slices.DeleteFunc(t.UnusedColumns(used...), isOutcomeColumn)
	if len(others) > 0 {
		t.Warnf("unknown columns are ignored: %s", strings.Join(others, ", "))
	}
	t.names = fieldNames{t.Header[t.input], t.Header[t.output], t.Header[t.ttft], t.Header[max(t.e2e, t.end)]}
}

// row reads the current row into its run.
func (t *table) row() error {
	c := newRequest()
	c.InputTokens = t.Integer(t.input)
	c.ID, c.Tenant, c.SLOClass, c.Session = t.Value(t.id), t.Value(t.tenant), t.Value(t.class), t.Value(t.user)
	c.Step = strings.Clone(t.Value(t.stage))
	if n := t.Optional(t.prefix); n < 0 || n > c.InputTokens {
		return t.Errorf("%s must be between 0 and %s (%d), is %d", t.Header[t.prefix], t.Header[t.input],
			c.InputTokens, n)
	} else if n > 0 {
		c.info.prompt = SharedPrefix(c.InputTokens, n)
	}
	if state := t.Value(t.state); state != "" && state != completed && !slices.Contains(failedStates, state) {
		return t.Errorf("state must be one of %s, %s, is %q", completed, strings.Join(failedStates, ", "), state)
	}
	t.times(&c)
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
		run = &tableRun{setup: map[string]string{}}
		for i, column := range setup {
			run.setup[column] = own[i]
		}
		t.keys[key] = run
		t.runs = append(t.runs, run)
	}
	run.requests = append(run.requests, c)
	return nil
}

// completedWords are the status values of completed requests.
var completedWords = []string{"", "ok", "success", "succeeded", "completed", "200", "200.0", "true"}

// noError are the values of error columns that mean no error.
var noError = []string{"", "none", "null", "nan"}

// failedStates are the states of requests that did not complete.
var failedStates = []string{stream.StateRejected, stream.StateTimedOut, stream.StateFailed, stream.StateUnfinished}

// failure returns why the request of the current row failed, "" if it completed, and its state then.
func (t *table) failure() (why, state string) {
	if state := t.Value(t.state); slices.Contains(failedStates, state) {
		return cmp.Or(t.Value(t.reason), state), state
	}
	return t.fault(), stream.StateFailed
}

// fault returns what the columns of errors and statuses say, "" if the request completed.
func (t *table) fault() string {
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

// times reads the output tokens and the times of the current row.
func (t *table) times(c *request) {
	c.at = 0
	if t.at >= 0 {
		c.at = t.TimeUS(t.at)
	}
	if failure, state := t.failure(); failure != "" {
		c.OutputTokens = t.Optional(t.output)
		if t.Value(t.ended) != "" {
			c.last = t.TimeUS(t.ended)
		}
		c.fail(failure)
		c.State = state
		return
	}
	c.complete(t.Integer(t.output))
	if t.Value(t.ttft) != "" { // otherwise it was not streamed
		c.first = c.at + t.TimeUS(t.ttft)
	}
	if t.e2e < 0 {
		c.last = t.TimeUS(t.end)
	} else {
		c.last = c.at + t.TimeUS(t.e2e)
	}
}

// run converts the requests of a run.
func (t *table) run(rows *tableRun) (*Run, error) {
	run := &Run{Clock: clientClock, Arrivals: t.at >= 0}
	if err := run.applySetup(rows.setup, &textio.Position{Name: t.Name}); err != nil {
		return nil, err
	}
	if err := run.setOutcomes(rows.requests, t.Name); err != nil {
		return nil, err
	}
	if !run.Arrivals {
		run.warnf("%s", noArrivalsWarning)
	}
	run.warnStreaming(rows.requests)
	if run.Arrivals {
		run.warnDuplicates()
	}
	if t.e2e >= 0 && t.Unit(t.e2e) == 1e6 {
		run.warnSlow(t.inMS())
	}
	return run, nil
}

// inMS returns the names that the time columns would have in ms.
func (t *table) inMS() string {
	name := func(at int) string { return strings.TrimSuffix(t.Header[at], "_s") + "_ms" }
	if t.Unit(t.ttft) != 1e6 {
		return name(t.e2e)
	}
	return name(t.ttft) + " and " + name(t.e2e)
}

// applySetup sets the server setup from the values of the columns in setup.
func (r *Run) applySetup(values map[string]string, p *textio.Position) error {
	r.Model, r.GPU = values["model"], values["gpu"]
	for _, n := range []struct {
		column string
		into   *int
	}{{"replicas", &r.Replicas}, {"tp", &r.TensorParallel}} {
		text := values[n.column]
		if text == "" {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 {
			return p.Errorf("%s must be an integer of at least 1, is %q", n.column, text)
		}
		*n.into = v
	}
	if text := values["target_qps"]; text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate >= 0) {
			return p.Errorf("target_qps must be a number of at least 0, is %q", text)
		}
		if !math.IsInf(rate, 0) {
			r.TargetRPS = rate
		}
	}
	return nil
}
