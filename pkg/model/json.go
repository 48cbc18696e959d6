package model

import (
	"bytes"
	"encoding/json"
	"errors"
)

// hfFreq is moe_layer_freq: a period, or 1 for each layer with experts and 0 for the others.
type hfFreq struct {
	period *int
	layers []int
}

// UnmarshalJSON decodes either form.
func (q *hfFreq) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, &q.layers)
	}
	if json.Unmarshal(text, &q.period) != nil {
		return errors.New("moe_layer_freq: must be an integer or a list of integers")
	}
	return nil
}

// finite replaces the numbers Infinity, -Infinity and NaN by null. JSON has no such numbers, but
// Python writes them, in fields of no interest here.
func finite(data []byte) []byte {
	if json.Valid(data) {
		return data
	}
	var out []byte
	quoted := false
	for i := 0; i < len(data); i++ {
		if quoted && data[i] == '\\' && i+1 < len(data) {
			out = append(out, data[i], data[i+1])
			i++
			continue
		}
		if data[i] == '"' {
			quoted = !quoted
		}
		if n := infinite(data[i:]); n > 0 && !quoted {
			out = append(out, "null"...)
			i += n - 1
			continue
		}
		out = append(out, data[i])
	}
	return out
}

// infinite returns the length of a number at the beginning of text that JSON does not have.
func infinite(text []byte) int {
	for _, name := range []string{"Infinity", "-Infinity", "NaN"} {
		if bytes.HasPrefix(text, []byte(name)) {
			return len(name)
		}
	}
	return 0
}
