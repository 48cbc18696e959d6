package trace

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blis/pkg/record"
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
	*sheet
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
	s, err := openSheet(in, tracev2Columns)
	if err != nil {
		return nil, err
	}
	t := &tracev2{sheet: s,
		served: s.column("server_input_tokens"), tenant: s.column("tenant_id"), class: s.column("slo_class"), model: s.column("model"),
		session: s.column("session_id"), turn: s.column("round_index"), group: s.column("prefix_group"), prefix: s.column("prefix_length"),
		deadline: s.column("deadline_us"), status: s.column("status")}
	if err := s.needAll(wanted{"request_id", &t.id}, wanted{"arrival_time_us", &t.at}, wanted{"input_tokens", &t.input}, wanted{"output_tokens", &t.output}); err != nil {
		s.Close()
		return nil, err
	}
	return t, nil
}

func (t *tracev2) Next(a *record.Arrival) (float64, error) {
	for {
		if err := t.read(); err != nil {
			return 0, err
		}
		us, err := t.time(t.at)
		if err != nil {
			return 0, err
		}
		r := request(a)
		if err := t.integers([]int{t.input, t.output}, &r.InputTokens, &r.OutputTokens); err != nil {
			return 0, err
		}
		if status := t.value(t.status); r.OutputTokens == 0 && status != "" && status != "ok" {
			t.failed++
			continue
		}
		r.ID, r.Tenant, r.SLOClass, r.Model, r.Session = t.value(t.id), t.value(t.tenant), t.value(t.class), t.value(t.model), t.value(t.session)
		if r.Session != "" {
			if r.Turn, err = t.optional(t.turn); err != nil {
				return 0, err
			}
			if r.Turn < 0 || r.Turn > maxTokens {
				return 0, t.Errorf("round_index must be between 0 and %d, is %d", maxTokens, r.Turn)
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
	prefix, err := t.optional(t.prefix)
	if err != nil {
		return err
	}
	served, err := t.optional(t.served)
	if err != nil {
		return err
	}
	switch group := t.value(t.group); {
	case prefix < 0 || prefix > maxTokens:
		return t.Errorf("prefix_length must be between 0 and %d, is %d", maxTokens, prefix)
	case group != "" && prefix > 0 && r.InputTokens >= 0:
		r.InputTokens = min(r.InputTokens, maxTokens) + prefix
		r.Prompt = append(r.Prompt, record.Segment{ID: group, Tokens: prefix})
	case group == "" && served > 0:
		r.InputTokens = served
	}
	return nil
}

func (t *tracev2) setDeadline(r *record.Request, us float64) error {
	deadline, err := t.optional(t.deadline)
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
func (t *tracev2) Warnings() []string { return t.leftOut(t.failed, "that failed without an answer") }

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
		return checkHeaderLines(&place{name: name}, bufio.NewScanner(f))
	}
	return nil
}

// checkHeaderLines looks for the two scalars that matter at the top level; the
// rest of the header, the server's configuration, is nested or free.
func checkHeaderLines(p *place, lines *bufio.Scanner) error {
	allowed := map[string][]string{"trace_version": {"2"}, "time_unit": {"us", "microseconds"}}
	for lines.Scan() {
		p.line++
		key, value, _ := strings.Cut(lines.Text(), ":")
		value, _, _ = strings.Cut(value, " #")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if want := allowed[key]; want != nil && !slices.Contains(want, value) {
			return p.Errorf("%s must be %s, is %q", key, strings.Join(want, " or "), value)
		}
	}
	return lines.Err()
}
