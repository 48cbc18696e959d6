package metrics

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// WithNulls is a tree that is encoded with all its fields: a missing value is null, and a
// nil Raw is a tree of nulls. Programs find the same keys in every tree, also after a
// failed run.
type WithNulls struct{ *Raw }

// MarshalJSON encodes the tree.
func (w WithNulls) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	v := reflect.Zero(reflect.TypeFor[Raw]())
	if w.Raw != nil {
		v = reflect.ValueOf(w.Raw).Elem()
	}
	err := encode(&b, v, w.Raw != nil)
	return b.Bytes(), err
}

// encode appends v; its numbers are null unless present.
func encode(b *bytes.Buffer, v reflect.Value, present bool) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return encode(b, reflect.Zero(v.Type().Elem()), false)
		}
		return encode(b, v.Elem(), present)
	case reflect.Struct:
		b.WriteByte('{')
		first := true
		err := encodeFields(b, v, present, &first)
		b.WriteByte('}')
		return err
	case reflect.Map:
		b.WriteByte('{')
		for i, key := range slices.SortedFunc(maps.Keys(mapKeys(v)), strings.Compare) {
			if i > 0 {
				b.WriteByte(',')
			}
			quoted, err := json.Marshal(key)
			if err != nil {
				return err
			}
			b.Write(append(quoted, ':'))
			if err := encode(b, v.MapIndex(reflect.ValueOf(key)), true); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := encode(b, v.Index(i), true); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	zero, _ := v.Interface().(interface{ IsZero() bool })
	if !present || zero != nil && zero.IsZero() {
		b.WriteString("null")
		return nil
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

// encodeFields appends the fields of a struct, including those of embedded structs.
func encodeFields(b *bytes.Buffer, v reflect.Value, present bool, first *bool) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := encodeFields(b, v.Field(i), present, first); err != nil {
				return err
			}
			continue
		}
		if !*first {
			b.WriteByte(',')
		}
		*first = false
		quoted, err := json.Marshal(jsonName(f))
		if err != nil {
			return err
		}
		b.Write(append(quoted, ':'))
		if err := encode(b, v.Field(i), present); err != nil {
			return err
		}
	}
	return nil
}
