package metrics

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Whole is a tree that on the wire has all its places: what is absent is null
// there, and a nil Raw a tree of nothing else. Programs find the same keys in
// every tree, of a run that failed too.
type Whole struct{ *Raw }

// MarshalJSON encodes the tree.
func (w Whole) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	v := reflect.Zero(reflect.TypeFor[Raw]())
	if w.Raw != nil {
		v = reflect.ValueOf(w.Raw).Elem()
	}
	err := encode(&b, v, w.Raw != nil)
	return b.Bytes(), err
}

// encode adds v, whose numbers are null unless they are there.
func encode(b *bytes.Buffer, v reflect.Value, there bool) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return encode(b, reflect.Zero(v.Type().Elem()), false)
		}
		return encode(b, v.Elem(), there)
	case reflect.Struct:
		b.WriteByte('{')
		first := true
		err := encodeFields(b, v, there, &first)
		b.WriteByte('}')
		return err
	case reflect.Map:
		b.WriteByte('{')
		for i, key := range slices.SortedFunc(maps.Keys(keys(v)), strings.Compare) {
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
	if !there || zero != nil && zero.IsZero() {
		b.WriteString("null")
		return nil
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

// encodeFields adds the fields of a struct, those of embedded ones among them.
func encodeFields(b *bytes.Buffer, v reflect.Value, there bool, first *bool) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := encodeFields(b, v.Field(i), there, first); err != nil {
				return err
			}
			continue
		}
		if !*first {
			b.WriteByte(',')
		}
		*first = false
		quoted, err := json.Marshal(name(f))
		if err != nil {
			return err
		}
		b.Write(append(quoted, ':'))
		if err := encode(b, v.Field(i), there); err != nil {
			return err
		}
	}
	return nil
}
