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

const tracev2Columns = "request_id,…,input_tokens,output_tokens,…,arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,…"

// tracev2Names are the columns that its writers know.
var tracev2Names = strings.Split("request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming,input_tokens,output_tokens,"+
	"text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,deadline_us,server_input_tokens,arrival_time_us,send_time_us,first_chunk_time_us,"+
	"last_chunk_time_us,num_chunks,status,error_message,finish_reason", ",")

func isTraceV2(h *head) bool { return h.has("request_id", "arrival_time_us", "input_tokens") }

// tracev2 reads the traces of the BLIS in inference-sim
// (github.com/inference-sim/inference-sim, sim/workload), version 2: a table, and
// beside it a header in YAML, of which version and unit are checked if it is
// there. Prompts are as long as in a replay there: with a prefix group,
// prefix_length and input_tokens; without one, server_input_tokens where the
// server counted.
type tracev2 struct {
	*textio.Sheet
	id, at, input, output int
	// These may be absent.
	send, first, last, chunks, status, fault    int
	served, tenant, class, model, session, turn int
	group, prefix, deadline                     int
	calls                                       []call
	chunked, answered                           int
	// lag is how much later than planned the first request was sent, on the clock of
	// sending; unsent are the places of those that were not.
	lag    float64
	unsent []int
}

// readTraceV2 reads such a table. An arrival is when the request was sent; of one
// that was not, as in a trace that was only generated, when it was to be.
func readTraceV2(f *file, r *Recording) error {
	run := &Run{Clock: ClientClock, Arrivals: true}
	if err := run.readTraceV2Header(f.path); err != nil {
		return err
	}
	s, err := textio.NewSheet(f.Name, f, tracev2Columns)
	if err != nil {
		return err
	}
	t := &tracev2{Sheet: s, lag: absent,
		send: s.Column("send_time_us"), first: s.Column("first_chunk_time_us"), last: s.Column("last_chunk_time_us"), chunks: s.Column("num_chunks"),
		status: s.Column("status"), fault: s.Column("error_message"), served: s.Column("server_input_tokens"), tenant: s.Column("tenant_id"),
		class: s.Column("slo_class"), model: s.Column("model"), session: s.Column("session_id"), turn: s.Column("round_index"),
		group: s.Column("prefix_group"), prefix: s.Column("prefix_length"), deadline: s.Column("deadline_us")}
	if err := s.NeedAll(textio.Want("request_id", &t.id), textio.Want("arrival_time_us", &t.at), textio.Want("input_tokens", &t.input), textio.Want("output_tokens", &t.output)); err != nil {
		return err
	}
	run.warnUnknown(s.Header, tracev2Names)
	if err := eachRow(s, "requests", t.row); err != nil {
		return err
	}
	for _, i := range t.unsent {
		if isAbsent(t.lag) {
			break // none was: all arrive as planned
		}
		t.calls[i].at += t.lag
	}
	if t.answered == 0 {
		run.warnf("nothing in it was measured: it is a workload, not a recording")
	}
	run.warnChunks(t.chunked)
	r.Runs = []*Run{run}
	return outcomes(&textio.Place{Name: f.Name}, t.calls, run)
}

// row reads the next request.
func (t *tracev2) row() error {
	if err := t.Read(); err != nil {
		return err
	}
	c := newCall()
	if err := t.Integers([]int{t.input, t.output}, &c.InputTokens, &c.OutputTokens); err != nil {
		return err
	}
	c.ID, c.Tenant, c.SLOClass, c.Model, c.Session = strings.Clone(t.Value(t.id)), strings.Clone(t.Value(t.tenant)), strings.Clone(t.Value(t.class)), strings.Clone(t.Value(t.model)), strings.Clone(t.Value(t.session))
	if err := t.prompt(&c); err != nil {
		return err
	}
	if err := t.times(&c); err != nil {
		return err
	}
	t.calls = append(t.calls, c)
	return c.check(&t.Place, words{"input_tokens", "output_tokens", "first_chunk_time_us", "last_chunk_time_us"})
}

// prompt completes the length of the prompt, and what else is said of the request.
func (t *tracev2) prompt(c *call) error {
	var prefix, served, deadline int64
	for _, n := range []struct {
		column int
		into   *int64
	}{{t.prefix, &prefix}, {t.served, &served}, {t.deadline, &deadline}, {t.turn, &c.offer.turn}} {
		var err error
		if *n.into, err = t.Optional(n.column); err != nil {
			return err
		}
		if *n.into < 0 || n.column != t.deadline && *n.into > textio.MaxTokens {
			return t.Errorf("%s must be between 0 and %d, is %d", t.Header[n.column], textio.MaxTokens, *n.into)
		}
	}
	if c.Session == "" {
		c.offer.turn = 0
	}
	switch group := t.Value(t.group); {
	case group != "" && prefix > 0 && c.InputTokens >= 0:
		c.InputTokens = min(c.InputTokens, textio.MaxTokens) + prefix
		c.offer.prompt = []stream.Segment{{ID: strings.Clone(group), Tokens: prefix}}
	case group == "" && served > 0:
		c.InputTokens = served
	}
	if deadline == 0 {
		return nil
	}
	at, err := t.Time(t.at)
	if err != nil {
		return err
	}
	if float64(deadline) <= at {
		return t.Errorf("deadline_us must be after arrival_time_us (%g), or 0 for none; it is %d", at, deadline)
	}
	c.offer.deadline = float64(deadline) - at
	return nil
}

// times reads what was measured of the row at hand. A time of 0 was not.
func (t *tracev2) times(c *call) error {
	var planned, send, first, last float64
	for _, n := range []struct {
		column int
		into   *float64
	}{{t.at, &planned}, {t.send, &send}, {t.first, &first}, {t.last, &last}} {
		if t.Value(n.column) == "" && n.column != t.at {
			continue
		}
		v, err := t.Time(n.column)
		if err != nil {
			return err
		}
		*n.into = v
	}
	c.at = planned
	if send > 0 {
		c.at = send
		if isAbsent(t.lag) {
			t.lag = send - planned
		}
	} else {
		t.unsent = append(t.unsent, len(t.calls))
	}
	status := t.Value(t.status)
	switch {
	case !slices.Contains(completedWords, strings.ToLower(status)):
		c.fail(cmp.Or(t.Value(t.fault), status))
		return nil
	case last == 0: // generated, not sent
		c.State = stream.StateUnfinished
		return nil
	}
	t.answered++
	c.complete(c.OutputTokens)
	if first > 0 {
		c.first = first
	}
	c.last = last
	chunks, err := t.Optional(t.chunks)
	if chunks > 0 && chunks < c.OutputTokens {
		t.chunked++
	}
	return err
}

// readTraceV2Header checks version and unit in the header that belongs to the
// table at path, if there is one, and takes what it says of the server:
// a.header.yaml or a.yaml for a.csv.
func (r *Run) readTraceV2Header(path string) error {
	if path == "" {
		r.warnf("the header in YAML that belongs to it is not read from a pipe: what ran before, and was left out, is not known")
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
		return r.takeTraceV2Header(&textio.Place{Name: name}, bufio.NewScanner(f))
	}
	return nil
}

// takeTraceV2Header looks for the scalars that matter; the rest of the header is
// nested deeper, or free.
func (r *Run) takeTraceV2Header(p *textio.Place, lines *bufio.Scanner) error {
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
			r.warnf("the first %s requests are left out of the file, though they loaded the server (warm_up_requests)", value)
		case section == "server" && own == "model":
			r.Model = value
		case section == "server" && own == "type":
			r.Engine = value
		case section == "server" && (own == "tensor_parallel" || own == "tensor_parallel_size" || own == "tp"):
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return p.Errorf("%s must be a whole number from 1, is %q", own, value)
			}
			r.TensorParallel = n
		}
	}
	return lines.Err()
}
