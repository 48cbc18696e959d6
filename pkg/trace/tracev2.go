package trace

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blis/pkg/record"
	"blis/pkg/source"
)

const tracev2Columns = "request_id,…,input_tokens,output_tokens,…,arrival_time_us,…"

// tracev2 reads the traces of the BLIS in inference-sim
// (github.com/inference-sim/inference-sim, sim/workload), version 2: a table,
// and beside it a header in YAML, of which version and unit are checked if it is
// there. Requests arrive at arrival_time_us and keep their ids, labels and
// deadlines; columns of what was measured are left aside. Prompts are as long as
// in a replay there: with a prefix group, prefix_length and input_tokens; without
// one, server_input_tokens where the server counted.
type tracev2 struct {
	*source.Sheet
	at, id, input, output int
	// These may be absent.
	served, tenant, class, model, session, turn, group, prefix, deadline, status int
	failed                                                                       int64
}

func openTraceV2(in Input, _ Options) (Reader, error) {
	if in.Path != "" {
		if err := checkTraceV2Header(in.Path); err != nil {
			return nil, err
		}
	}
	s, err := source.OpenSheet(in, tracev2Columns)
	if err != nil {
		return nil, err
	}
	t := &tracev2{Sheet: s,
		served: s.Column("server_input_tokens"), tenant: s.Column("tenant_id"), class: s.Column("slo_class"), model: s.Column("model"),
		session: s.Column("session_id"), turn: s.Column("round_index"), group: s.Column("prefix_group"), prefix: s.Column("prefix_length"),
		deadline: s.Column("deadline_us"), status: s.Column("status")}
	if err := s.NeedAll(source.Want("request_id", &t.id), source.Want("arrival_time_us", &t.at), source.Want("input_tokens", &t.input), source.Want("output_tokens", &t.output)); err != nil {
		s.Close()
		return nil, err
	}
	return t, nil
}

func (t *tracev2) Next(a *record.Arrival) (float64, error) {
	for {
		if err := t.Read(); err != nil {
			return 0, err
		}
		us, err := t.Time(t.at)
		if err != nil {
			return 0, err
		}
		r := request(a)
		if err := t.Integers([]int{t.input, t.output}, &r.InputTokens, &r.OutputTokens); err != nil {
			return 0, err
		}
		if status := t.Value(t.status); r.OutputTokens == 0 && status != "" && status != "ok" {
			t.failed++
			continue
		}
		r.ID, r.Tenant, r.SLOClass, r.Model, r.Session = t.Value(t.id), t.Value(t.tenant), t.Value(t.class), t.Value(t.model), t.Value(t.session)
		if r.Session != "" {
			if r.Turn, err = t.Optional(t.turn); err != nil {
				return 0, err
			}
			if r.Turn < 0 || r.Turn > source.MaxTokens {
				return 0, t.Errorf("round_index must be between 0 and %d, is %d", source.MaxTokens, r.Turn)
			}
		}
		if err := t.setPrompt(r); err != nil {
			return 0, err
		}
		return us, t.setDeadline(r, us)
	}
}

// setPrompt completes the length of the prompt.
func (t *tracev2) setPrompt(r *record.Request) error {
	prefix, err := t.Optional(t.prefix)
	if err != nil {
		return err
	}
	served, err := t.Optional(t.served)
	if err != nil {
		return err
	}
	switch group := t.Value(t.group); {
	case prefix < 0 || prefix > source.MaxTokens:
		return t.Errorf("prefix_length must be between 0 and %d, is %d", source.MaxTokens, prefix)
	case group != "" && prefix > 0 && r.InputTokens >= 0:
		r.InputTokens = min(r.InputTokens, source.MaxTokens) + prefix
		r.Prompt = append(r.Prompt, record.Segment{ID: group, Tokens: prefix})
	case group == "" && served > 0:
		r.InputTokens = served
	}
	return nil
}

func (t *tracev2) setDeadline(r *record.Request, us float64) error {
	deadline, err := t.Optional(t.deadline)
	if err != nil || deadline == 0 {
		return err
	}
	if float64(deadline) <= us {
		return t.Errorf("deadline_us must be after arrival_time_us (%g), or 0 for none; it is %d", us, deadline)
	}
	r.DeadlineUS = record.Micros(float64(deadline) - us)
	return nil
}

// Warnings says what was left out.
func (t *tracev2) Warnings() []string { return t.LeftOut(t.failed, "that failed without an answer") }

// checkTraceV2Header checks version and unit in the header that belongs to the
// table at path, if there is one: a.header.yaml or a.yaml for a.csv.
func checkTraceV2Header(path string) error {
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
		return checkHeaderLines(&source.Place{Name: name}, bufio.NewScanner(f))
	}
	return nil
}

// checkHeaderLines looks for the two scalars that matter at the top level; the
// rest of the header, the server's configuration, is nested or free.
func checkHeaderLines(p *source.Place, lines *bufio.Scanner) error {
	allowed := map[string][]string{"trace_version": {"2"}, "time_unit": {"us", "microseconds"}}
	for lines.Scan() {
		p.Line++
		key, value, _ := strings.Cut(lines.Text(), ":")
		value, _, _ = strings.Cut(value, " #")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if want := allowed[key]; want != nil && !slices.Contains(want, value) {
			return p.Errorf("%s must be %s, is %q", key, strings.Join(want, " or "), value)
		}
	}
	return lines.Err()
}
