package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"blis/pkg/named"
)

// wekaSession is one session. Its calls keep where their prompts end in the
// tree, and no ids.
type wekaSession struct {
	id, scope string
	blockSize int64
	tree      *blockTree
	calls     []wekaCall
}

// wekaCall is one element of requests: a call of a model, or a sub-agent with
// its own. Times are seconds; nil is absent.
type wekaCall struct {
	Type string   `json:"type"`
	T    *float64 `json:"t"`

	// A call of a model: n, or s where the answer was streamed.
	In        *int64   `json:"in"`
	Out       *int64   `json:"out"`
	HashIDs   []hashID `json:"hash_ids"`
	APITime   *float64 `json:"api_time"`
	ThinkTime *float64 `json:"think_time"`

	// A sub-agent, which began DurationMS before T; without, at T.
	DurationMS *float64          `json:"duration_ms"`
	Requests   []json.RawMessage `json:"requests"`

	wekaAside

	// blocks are how many of them the prompt has, node where it ends in the tree.
	blocks int64
	node   int32
	calls  []wekaCall // of a sub-agent
}

// wekaAside are the fields that a replay has no use for.
type wekaAside struct {
	Model        aside `json:"model"`
	Models       aside `json:"models"`
	Stop         aside `json:"stop"`
	InputTypes   aside `json:"input_types"`
	OutputTypes  aside `json:"output_types"`
	TTFT         aside `json:"ttft"`
	AgentID      aside `json:"agent_id"`
	SubagentType aside `json:"subagent_type"`
	Status       aside `json:"status"`
	TotalTokens  aside `json:"total_tokens"`
	ToolUseCount aside `json:"tool_use_count"`
	ToolTokens   aside `json:"tool_tokens"`
	SystemTokens aside `json:"system_tokens"`
}

// aside is a value that is not looked at.
type aside struct{}

// UnmarshalJSON takes anything.
func (*aside) UnmarshalJSON([]byte) error { return nil }

// wekaTypes are what an element of requests can be.
var wekaTypes = []string{"n", "s", "subagent"}

// read reads the next session of the file at hand, element by element; io.EOF
// after the last.
func (w *weka) read() (*wekaSession, error) {
	s := &wekaSession{tree: newBlockTree()}
	if err := w.open1('{'); err != nil {
		return nil, err
	}
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return nil, w.syntax(err)
		}
		if err := w.member(s, key.(string)); err != nil {
			return nil, err
		}
	}
	if _, err := w.dec.Token(); err != nil {
		return nil, w.syntax(err)
	}
	first, taken := w.ids[s.id]
	switch {
	case s.id == "":
		return nil, w.Errorf("id must be given")
	case taken:
		return nil, w.Errorf("the session %q stood already in %s", s.id, first)
	case s.scope != "" && s.scope != "local":
		return nil, w.Errorf("hash_id_scope must be local, is %q", s.scope)
	}
	w.ids[s.id] = w.name
	return s, w.checkBlocks(s, s.calls, "requests")
}

// open1 takes the opening delimiter of an object or a list.
func (w *weka) open1(want json.Delim) error {
	token, err := w.dec.Token()
	switch {
	case err == io.EOF && want == '{':
		return io.EOF
	case err != nil:
		return w.syntax(err)
	case token != want:
		return w.Errorf("at byte %d: %s expected, not %v", w.dec.InputOffset(), want, token)
	}
	return nil
}

func (w *weka) syntax(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return w.Errorf("at byte %d: %s", w.dec.InputOffset(), jsonFault(err))
}

// member reads one member of a session.
func (w *weka) member(s *wekaSession, key string) error {
	var into any
	switch key {
	case "id":
		into = &s.id
	case "hash_id_scope":
		into = &s.scope
	case "block_size":
		into = &s.blockSize
	case "requests":
		return w.requests(s)
	case "models", "tool_tokens", "system_tokens", "totals":
		into = &aside{}
	default:
		w.note(key)
		into = &aside{}
	}
	if err := w.dec.Decode(into); err != nil {
		return w.Errorf("%s: %s", key, jsonFault(err))
	}
	return nil
}

// requests reads the list of calls.
func (w *weka) requests(s *wekaSession) error {
	if err := w.open1('['); err != nil {
		return err
	}
	for w.dec.More() {
		var raw json.RawMessage
		if err := w.dec.Decode(&raw); err != nil {
			return w.syntax(err)
		}
		var c wekaCall
		if err := w.call(s, &c, raw, fmt.Sprintf("requests[%d]", len(s.calls))); err != nil {
			return err
		}
		s.calls = append(s.calls, c)
	}
	if _, err := w.dec.Token(); err != nil {
		return w.syntax(err)
	}
	return nil
}

// call reads the element of requests called path.
func (w *weka) call(s *wekaSession, c *wekaCall, raw []byte, path string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(c)
	for err != nil {
		field, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
		if !unknown {
			return w.Errorf("%s: %s", path, jsonFault(err))
		}
		w.note(strings.Trim(field, `"`))
		*c = wekaCall{}
		err = json.Unmarshal(raw, c)
	}
	if err := w.checkCall(c, path); err != nil {
		return err
	}
	if c.Type != "subagent" {
		c.node, c.blocks, c.HashIDs = s.tree.add(c.HashIDs), int64(len(c.HashIDs)), nil
		return nil
	}
	c.calls = make([]wekaCall, len(c.Requests))
	for i, raw := range c.Requests {
		if err := w.call(s, &c.calls[i], raw, fmt.Sprintf("%s.requests[%d]", path, i)); err != nil {
			return err
		}
	}
	c.Requests = nil
	return nil
}

// checkCall holds the fields of one element to what they must be.
func (w *weka) checkCall(c *wekaCall, path string) error {
	if !slices.Contains(wekaTypes, c.Type) {
		return w.Errorf("%s.type: %v", path, named.Unknown("type", c.Type, wekaTypes))
	}
	if c.T == nil {
		return w.Errorf("%s.t must be given", path)
	}
	for _, t := range []struct {
		name  string
		value *float64
	}{{"t", c.T}, {"api_time", c.APITime}, {"think_time", c.ThinkTime}, {"duration_ms", c.DurationMS}} {
		if t.value != nil && !(*t.value >= 0 && *t.value <= math.MaxInt32*1000.) {
			return w.Errorf("%s.%s must be at least 0, is %g", path, t.name, *t.value)
		}
	}
	if c.Type == "subagent" {
		return nil
	}
	for _, n := range []struct {
		name  string
		value *int64
		least int64
	}{{"in", c.In, 1}, {"out", c.Out, 0}} {
		if n.value == nil || *n.value < n.least || *n.value > maxTokens {
			return w.Errorf("%s.%s must be a whole number from %d to %d", path, n.name, n.least, maxTokens)
		}
	}
	w.calls++
	if *c.Out == 0 {
		w.empty++
	} else if c.APITime == nil {
		w.unknown++
	}
	return nil
}

// checkBlocks reports a prompt with more blocks than it has tokens for. It waits
// for the end of the session, where the size of a block is known for sure.
func (w *weka) checkBlocks(s *wekaSession, calls []wekaCall, path string) error {
	if s.blockSize < 1 || s.blockSize > maxTokens {
		return w.Errorf("block_size must be a whole number from 1, is %d", s.blockSize)
	}
	for i := range calls {
		c := &calls[i]
		if c.Type == "subagent" {
			if err := w.checkBlocks(s, c.calls, fmt.Sprintf("%s[%d].requests", path, i)); err != nil {
				return err
			}
		} else if whole := *c.In / s.blockSize; c.blocks > whole {
			return w.Errorf("%s[%d].hash_ids has %d ids, but the %d input tokens have %d whole blocks of %d", path, i, c.blocks, *c.In, whole, s.blockSize)
		}
	}
	return nil
}

// note notes a field that is not known.
func (w *weka) note(field string) {
	if !slices.Contains(w.strange, field) {
		w.strange = append(w.strange, field)
	}
}
