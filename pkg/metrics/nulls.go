package metrics

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// WithNulls is a tree that is encoded with all its fields: a missing value is null, and a
// nil Raw is a tree of nulls. Programs find the same keys in every tree, also after a
// failed run.
type WithNulls struct{ *Raw }

// MarshalJSON encodes the tree.
func (w WithNulls) MarshalJSON() ([]byte, error) {
	v := reflect.Zero(reflect.TypeFor[Raw]())
	if w.Raw != nil {
		v = reflect.ValueOf(w.Raw).Elem()
	}
	return appendJSON(nil, v, w.Raw != nil)
}

// appendJSON appends v; its numbers are null unless present.
func appendJSON(b []byte, v reflect.Value, present bool) (_ []byte, err error) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return appendJSON(b, reflect.Zero(v.Type().Elem()), false)
		}
		return appendJSON(b, v.Elem(), present)
	case reflect.Struct:
		separator := byte('{')
		for _, f := range jsonFields(v.Type()) {
			b = append(strconv.AppendQuote(append(b, separator), f.name), ':')
			if b, err = appendJSON(b, v.FieldByIndex(f.index), present); err != nil {
				return nil, err
			}
			separator = ','
		}
		return append(b, '}'), nil
	case reflect.Map:
		b = append(b, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			quoted, err := json.Marshal(key)
			if err != nil {
				return nil, err
			}
			b = append(append(b, quoted...), ':')
			if b, err = appendJSON(b, v.MapIndex(reflect.ValueOf(key)), true); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, v.Index(i), true); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	zero, _ := v.Interface().(interface{ IsZero() bool })
	if !present || zero != nil && zero.IsZero() {
		return append(b, "null"...), nil
	}
	text, err := json.Marshal(v.Interface())
	return append(b, text...), err
}
