package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"blis/pkg/registry"
	"blis/pkg/textio"
)

// wekaSession is one session. Its calls refer to the tree after read, instead of holding ids.
type wekaSession struct {
	ID        string     `json:"id"`
	Scope     string     `json:"hash_id_scope"`
	BlockSize int64      `json:"block_size"`
	Requests  []wekaCall `json:"requests"`
	tree      *blockTree
}

// wekaCall is one element of requests: a model call, or a sub-agent with its own calls. Times are
// seconds; nil means absent. Other fields (the model, the stop reason, …) are not needed for a
// replay.
type wekaCall struct {
	Type string   `json:"type"`
	T    *float64 `json:"t"`

	// A model call: n, or s if it was streamed.
	In        *int64   `json:"in"`
	Out       *int64   `json:"out"`
	HashIDs   *hashIDs `json:"hash_ids"`
	APITime   *float64 `json:"api_time"`
	ThinkTime *float64 `json:"think_time"`

	// A sub-agent, which began DurationMS before T; without a duration at T.
	DurationMS *float64   `json:"duration_ms"`
	Requests   []wekaCall `json:"requests"`

	// blocks is the number of blocks of the prompt, node its last node in the tree.
	blocks int64
	node   int32
}

// wekaTypes are the types of elements of requests.
var wekaTypes = []string{"n", "s", "subagent"}

// read reads the next session of the current file; io.EOF after the last.
func (w *weka) read() (*wekaSession, error) {
	s := &wekaSession{tree: newBlockTree()}
	start := w.dec.InputOffset()
	w.limit.Next()
	if err := w.dec.Decode(s); err == io.EOF {
		return nil, err
	} else if err != nil {
		return nil, w.decodeError(err, s, start)
	}
	for i := range s.Requests {
		if err := w.addCall(s, &s.Requests[i], fmt.Sprintf("requests[%d]", i)); err != nil {
			return nil, err
		}
	}
	first, taken := w.ids[s.ID]
	switch {
	case s.ID == "":
		return nil, w.Errorf("id must be given")
	case taken:
		return nil, w.Errorf("duplicate session %q, first in %s", s.ID, first)
	case s.Scope != "" && s.Scope != "local":
		return nil, w.Errorf("hash_id_scope must be local, is %q", s.Scope)
	}
	w.ids[s.ID] = w.Name
	return s, w.checkBlocks(s, s.Requests, "requests")
}

// decodeError adds the position to an error of decoding s, which begins at byte start. Decoding
// stops at a list of hash ids that is invalid, in the last call so far.
func (w *weka) decodeError(err error, s *wekaSession, start int64) error {
	message := textio.JSONMessage(err)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return w.Errorf("at byte %d: %s", syntax.Offset, message)
	}
	if value, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return w.Errorf("at byte %d: %s", start+value.Offset, message)
	}
	if len(s.Requests) > 0 {
		return w.Errorf("requests[%d]: %s", len(s.Requests)-1, message)
	}
	return w.Errorf("the session at byte %d: %s", start, message)
}

// addCall validates the element at path, adds its prompts to the tree and drops their ids.
func (w *weka) addCall(s *wekaSession, c *wekaCall, path string) error {
	if err := w.checkCall(c, path); err != nil {
		return err
	}
	for i := range c.Requests {
		if err := w.addCall(s, &c.Requests[i], fmt.Sprintf("%s.requests[%d]", path, i)); err != nil {
			return err
		}
	}
	if c.HashIDs != nil {
		c.node, c.blocks, c.HashIDs = s.tree.add(*c.HashIDs), int64(len(*c.HashIDs)), nil
	}
	return nil
}

// checkCall validates the fields of one element.
func (w *weka) checkCall(c *wekaCall, path string) error {
	if !slices.Contains(wekaTypes, c.Type) {
		return w.Errorf("%s.type: %v", path, registry.Unknown("type", c.Type, wekaTypes))
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
	if c.HashIDs == nil {
		return w.Errorf("%s.hash_ids must be given", path)
	}
	for _, n := range []struct {
		name  string
		value *int64
		least int64
	}{{"in", c.In, 1}, {"out", c.Out, 0}} {
		if n.value == nil || *n.value < n.least || *n.value > textio.MaxTokens {
			return w.Errorf("%s.%s must be an integer from %d to %d", path, n.name, n.least, textio.MaxTokens)
		}
	}
	w.calls++
	if *c.Out == 0 {
		w.callsWithoutOutput++
	} else if c.APITime == nil {
		w.callsWithoutTime++
	}
	return nil
}

// checkBlocks reports a prompt with more blocks than its tokens allow.
func (w *weka) checkBlocks(s *wekaSession, calls []wekaCall, path string) error {
	if s.BlockSize < 1 || s.BlockSize > textio.MaxTokens {
		return w.Errorf("block_size must be an integer of at least 1, is %d", s.BlockSize)
	}
	for i := range calls {
		c := &calls[i]
		if c.Type == "subagent" {
			if err := w.checkBlocks(s, c.Requests, fmt.Sprintf("%s[%d].requests", path, i)); err != nil {
				return err
			}
		} else if whole := *c.In / s.BlockSize; c.blocks > whole {
			return w.Errorf("%s[%d].hash_ids has %d ids, but the %d input tokens have %d whole blocks of %d", path, i,
				c.blocks, *c.In, whole, s.BlockSize)
		}
	}
	return nil
}
