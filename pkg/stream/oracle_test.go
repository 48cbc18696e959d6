package stream

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The oracle decodes requests and outcomes with encoding/json and the descriptions of
// their objects: slow, plain and independent of the scanner.

func oracleRequest(line []byte) (Request, bool) {
	r := Request{DeadlineUS: Never}
	if !oracleObject(line, objectRequest) || json.Unmarshal(line, &r) != nil {
		return r, false
	}
	sum := int64(0)
	for _, s := range r.Prompt {
		if s.ID == "" {
			return r, false
		}
		sum += s.Tokens
	}
	return r, r.ID != "" && sum <= r.InputTokens && (r.DeadlineUS == Never || r.ArrivalUS <= r.DeadlineUS)
}

func oracleOutcome(line []byte) (Outcome, bool) {
	o := Outcome{
		AdmittedUS: Never, RoutedUS: Never, EnqueuedUS: Never, ScheduledUS: Never, PrefillReplica: NoIndex,
		PrefillEnqueuedUS: Never, PrefillScheduledUS: Never, PrefilledUS: Never, TransferStartedUS: Never,
		TransferredUS: Never, EncodedUS: Never, EmbeddingsUS: Never,
		FirstTokenUS: Never, CompletedUS: Never, EndedUS: Never, ITLMaxUS: Never, Replica: NoIndex,
	}
	if !oracleObject(line, objectOutcome) || json.Unmarshal(line, &o) != nil || o.ID == "" {
		return o, false
	}
	if o.State == StateCompleted {
		return o, o.ArrivalUS <= o.FirstTokenUS && o.FirstTokenUS <= o.CompletedUS && o.EndedUS == Never
	}
	return o, o.CompletedUS == Never && (o.EndedUS == Never || o.ArrivalUS <= o.EndedUS) &&
		(o.FirstTokenUS == Never || o.ArrivalUS <= o.FirstTokenUS)
}

// oracleObject reports whether text is an object with the fields of o.
func oracleObject(text []byte, o *Object) bool {
	if !json.Valid(text) || !utf8.Valid(text) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		i := slices.IndexFunc(o.Fields, func(f Field) bool { return f.Name == name })
		var value json.RawMessage
		if err != nil || !ok || i < 0 || seen[name] || dec.Decode(&value) != nil {
			return false
		}
		seen[name] = true
		if !oracleValue(value, o.Type.Field(i).Type, o.Fields[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Required && !seen[f.Name] })
}

// oracleValue reports whether text may be the value of f, of type t.
func oracleValue(text []byte, t reflect.Type, f Field) bool {
	if string(text) == "null" {
		return false
	}
	switch t.Kind() {
	case reflect.String:
		var s string
		return json.Unmarshal(text, &s) == nil && (f.OneOf == nil || slices.Contains(f.OneOf, s))
	case reflect.Int64, reflect.Int32:
		v, err := strconv.ParseInt(string(text), 10, 64)
		return err == nil && text[0] != '-' && v >= f.Min && v <= f.Max
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if json.Unmarshal(text, &list) != nil || t.Kind() == reflect.Array && len(list) != 2 {
			return false
		}
		for i, element := range list {
			bound := Field{Max: maxExact}
			if i == 1 {
				bound = Field{Min: 1, Max: maxTokens}
			}
			if !oracleValue(element, t.Elem(), bound) {
				return false
			}
		}
		return true
	case reflect.Struct: // a segment
		return oracleObject(text, objectSegment)
	}
	return json.Unmarshal(text, reflect.New(t).Interface()) == nil
}

// beyondOracle reports whether the line may contain an unpaired surrogate, which
// encoding/json accepts and turns into U+FFFD.
func beyondOracle(line []byte) bool {
	return strings.Contains(strings.ToLower(string(line)), `\ud`)
}
