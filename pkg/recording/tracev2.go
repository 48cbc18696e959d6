package recording

import (
	"bufio"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

const tracev2Columns = "request_id,…,input_tokens,output_tokens,…,arrival_time_us,send_time_us," +
	"first_chunk_time_us,last_chunk_time_us,num_chunks,status,…"

// tracev2Names are the columns that its writers use.
var tracev2Names = strings.Split(
	"request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming,"+
		"input_tokens,output_tokens,text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,"+
		"deadline_us,server_input_tokens,arrival_time_us,send_time_us,first_chunk_time_us,"+
		"last_chunk_time_us,num_chunks,status,error_message,finish_reason", ",")

func isTraceV2(h *head) bool { return h.has("request_id", "arrival_time_us", "input_tokens") }

// tracev2 reads the traces of inference-sim's BLIS (github.com/inference-sim/inference-sim,
// sim/workload), version 2: a table with an optional YAML header file, whose version and unit are
// checked. Prompt lengths are those of a replay there: with a prefix group, prefix_length plus
// input_tokens; otherwise server_input_tokens, if the server counted.
type tracev2 struct {
	*textio.Table
	id, at, input, output int
	// Optional columns; -1 means absent.
	send, first, last, chunks, status, errorText     int
	serverInput, tenant, class, model, session, turn int
	group, prefix, deadline                          int
	requests                                         []request
	answered                                         int
	// sendOffset is the delay of the first sent request relative to its plan, on the clock of
	// sending. unsent holds the indices of requests that were not sent.
	sendOffset float64
	unsent     []int
}

// readTraceV2 reads a TraceV2. An arrival is the send time, or the planned time of a request that
// was not sent, as in a generated trace.
func readTraceV2(f *file, r *Recording) error {
	run := &Run{Clock: clientClock, Arrivals: true}
	if err := run.readTraceV2Header(f.path); err != nil {
		return err
	}
	s, err := textio.NewTable(f.Name, f, tracev2Columns)
	if err != nil {
		return err
	}
	t := &tracev2{Table: s, sendOffset: missing,
		id: s.RequireColumn("request_id"), at: s.RequireColumn("arrival_time_us"),
		input: s.RequireColumn("input_tokens"), output: s.RequireColumn("output_tokens"),
		send: s.Column("send_time_us"), first: s.Column("first_chunk_time_us"), last: s.Column("last_chunk_time_us"),
		chunks: s.Column("num_chunks"), status: s.Column("status"), errorText: s.Column("error_message"),
		serverInput: s.Column("server_input_tokens"), tenant: s.Column("tenant_id"), class: s.Column("slo_class"),
		model: s.Column("model"), session: s.Column("session_id"), turn: s.Column("round_index"),
		group: s.Column("prefix_group"), prefix: s.Column("prefix_length"), deadline: s.Column("deadline_us")}
	run.warnUnknown(s.Header, tracev2Names)
	if err := forEachRow(s, "requests", t.row); err != nil {
		return err
	}
	for _, i := range t.unsent {
		if isMissing(t.sendOffset) {
			break // none was sent: all arrive as planned
		}
		t.requests[i].at += t.sendOffset
	}
	if t.answered == 0 {
		run.warnf("contains no measurements: it is a workload, not a recording")
	}
	run.warnChunks(t.requests)
	return r.add(run, t.requests)
}

// row reads the request of the current row.
func (t *tracev2) row() error {
	c := newRequest()
	c.InputTokens, c.OutputTokens = t.Integer(t.input), t.Integer(t.output)
	c.ID, c.Tenant, c.SLOClass, c.Model, c.Session = strings.Clone(t.Value(t.id)), strings.Clone(t.Value(t.tenant)),
		strings.Clone(t.Value(t.class)), strings.Clone(t.Value(t.model)), strings.Clone(t.Value(t.session))
	if err := t.prompt(&c); err != nil {
		return err
	}
	t.times(&c)
	t.requests = append(t.requests, c)
	return c.check(&t.Position, fieldNames{"input_tokens", "output_tokens", "first_chunk_time_us",
		"last_chunk_time_us"})
}

// prompt sets the length of the prompt, its prefix and the deadline.
func (t *tracev2) prompt(c *request) error {
	var prefix, served, deadline int64
	for _, n := range []struct {
		column int
		into   *int64
	}{{t.prefix, &prefix}, {t.serverInput, &served}, {t.deadline, &deadline}, {t.turn, &c.info.turn}} {
		*n.into = t.Optional(n.column)
		if *n.into < 0 || n.column != t.deadline && *n.into > textio.MaxTokens {
			return t.Errorf("%s must be between 0 and %d, is %d", t.Header[n.column], textio.MaxTokens, *n.into)
		}
	}
	if c.Session == "" {
		c.info.turn = 0
	}
	switch group := t.Value(t.group); {
	case group != "" && prefix > 0 && c.InputTokens >= 0:
		c.InputTokens = min(c.InputTokens, textio.MaxTokens) + prefix
		c.info.prompt = []stream.Segment{{ID: strings.Clone(group), Tokens: prefix}}
	case group == "" && served > 0:
		c.InputTokens = served
	}
	if deadline == 0 {
		return nil
	}
	at := t.Time(t.at)
	if float64(deadline) <= at {
		return t.Errorf("deadline_us must be after arrival_time_us (%g), or 0 for none, is %d", at, deadline)
	}
	c.info.deadline = float64(deadline) - at
	return nil
}

// times reads the times of the current row; 0 means not measured.
func (t *tracev2) times(c *request) {
	optional := func(column int) float64 {
		if t.Value(column) == "" {
			return 0
		}
		return t.Time(column)
	}
	planned := t.Time(t.at)
	send, first, last := optional(t.send), optional(t.first), optional(t.last)
	c.at = planned
	if send > 0 {
		c.at = send
		if isMissing(t.sendOffset) {
			t.sendOffset = send - planned
		}
	} else {
		t.unsent = append(t.unsent, len(t.requests))
	}
	status := t.Value(t.status)
	switch {
	case !slices.Contains(completedWords, strings.ToLower(status)):
		c.fail(cmp.Or(t.Value(t.errorText), status))
		return
	case last == 0: // generated but not sent
		c.State = stream.StateUnfinished
		return
	}
	t.answered++
	c.complete(c.OutputTokens)
	if first > 0 {
		c.first = first
	}
	c.last = last
	c.chunks = t.Optional(t.chunks)
}

// readTraceV2Header reads the header file of the table at path, if it exists: a.header.yaml or
// a.yaml for a.csv.
func (r *Run) readTraceV2Header(path string) error {
	if path == "" {
		r.warnf("the YAML header file cannot be found for a pipe: whether warm-up requests are missing is unknown")
		return nil
	}
	for _, suffix := range []string{".zst", ".gz", ".csv"} {
		path = strings.TrimSuffix(path, suffix)
	}
	for _, name := range []string{path + ".header.yaml", path + ".yaml"} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return r.parseTraceV2Header(&textio.Position{Name: name}, bufio.NewScanner(f))
	}
	return nil
}

// parseTraceV2Header checks version and unit and reads the server setup. The rest of the header is
// nested deeper or free text.
func (r *Run) parseTraceV2Header(p *textio.Position, lines *bufio.Scanner) error {
	allowed := map[string][]string{"trace_version": {"2"}, "time_unit": {"us", "microseconds"}}
	section := ""
	for lines.Scan() {
		p.Line++
		key, value, _ := strings.Cut(lines.Text(), ":")
		value, _, _ = strings.Cut(value, " #")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if want := allowed[key]; want != nil && !slices.Contains(want, value) {
			return p.Errorf("%s must be %s, is %q", key, strings.Join(want, " or "), value)
		}
		own := strings.TrimSpace(key)
		if own == key {
			section = key
		}
		switch {
		case key == "warm_up_requests" && value != "" && value != "0":
			r.warnf("the first %s requests are not in the file although they loaded the server (warm_up_requests)",
				value)
		case section == "server" && own == "model":
			r.Model = value
		case section == "server" && own == "type":
			r.Engine = value
		case section == "server" && (own == "tensor_parallel" || own == "tensor_parallel_size" || own == "tp"):
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return p.Errorf("%s must be an integer of at least 1, is %q", own, value)
			}
			r.TensorParallel = n
		}
	}
	return lines.Err()
}
