package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"blis/pkg/record"
)

// maxLine bounds the lines of a JSON trace: a prompt of ten million tokens in
// blocks of 16 has hash ids of some 6 MB.
const maxLine = 16 << 20

// lines reads a text of JSON objects, one a line.
type lines struct {
	place
	text *text
	scan *bufio.Scanner
}

func openLines(in Input) (*lines, error) {
	t, err := in.open()
	if err != nil {
		return nil, err
	}
	l := &lines{place: place{name: in.Name}, text: t, scan: bufio.NewScanner(t)}
	l.scan.Buffer(nil, maxLine)
	return l, nil
}

// Close closes the text.
func (l *lines) Close() error { return l.text.Close() }

// read decodes the next line that is not empty into row, in which nothing may
// be unknown; io.EOF after the last.
func (l *lines) read(row any) error {
	for {
		l.line++
		if !l.scan.Scan() {
			return l.ending()
		}
		if len(bytes.TrimSpace(l.scan.Bytes())) > 0 {
			break
		}
	}
	dec := json.NewDecoder(bytes.NewReader(l.scan.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(row); err != nil {
		return l.Errorf("%s", jsonFault(err))
	}
	if dec.More() {
		return l.Errorf("there is more on the line after the object")
	}
	return nil
}

// ending says why there are no more lines.
func (l *lines) ending() error {
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return l.Errorf("is longer than %d MiB", maxLine>>20)
	case err != nil:
		return l.Errorf("%v", err)
	}
	return io.EOF
}

// need reports the first field that is absent, of pairs of name and presence.
func (l *lines) need(fields ...field) error {
	for _, f := range fields {
		if f.absent {
			return l.Errorf("%s must be given", f.name)
		}
	}
	return nil
}

type field struct {
	name   string
	absent bool
}

// time checks a time of a row in some unit.
func (l *lines) time(name string, v float64, unit string) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return l.Errorf("%s must be at least 0 %s, is %g", name, unit, v)
	}
	return nil
}

// jsonFault is what an error of encoding/json says, in our words.
func jsonFault(err error) string {
	var value *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &value):
	case value.Field == "" && value.Type.Kind() == reflect.Struct:
		return "must be an object, not " + value.Value
	case value.Field == "":
		return "cannot be a " + value.Value
	case value.Type.Kind() == reflect.Int64:
		return value.Field + " takes whole numbers, not " + value.Value
	default:
		return value.Field + " cannot be a " + value.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// hashID is the number of a block.
type hashID int64

// hashIDs are those of a prompt, most of what there is to read in a trace that
// has them.
type hashIDs []hashID

// UnmarshalJSON reads a list of whole numbers, into the memory of h.
func (h *hashIDs) UnmarshalJSON(text []byte) error {
	*h = (*h)[:0]
	if string(text) == "null" {
		return nil
	}
	inside, ok := bytes.CutPrefix(text, []byte("["))
	if !ok {
		return fmt.Errorf("hash_ids takes a list, not %.40s", text)
	}
	inside = bytes.TrimSpace(bytes.TrimSuffix(inside, []byte("]")))
	for len(inside) > 0 {
		one, rest, _ := bytes.Cut(inside, []byte(","))
		one, inside = bytes.TrimSpace(one), rest
		n, err := strconv.ParseInt(string(one), 10, 64)
		if err != nil {
			return fmt.Errorf("hash_ids takes whole numbers, not %.40s", one)
		}
		*h = append(*h, hashID(n))
	}
	return nil
}

// blocks turns hash ids into prompts.
type blocks struct {
	// size is how many tokens an id stands for.
	size int64
	// read counts prompts, uncovered those of which the ids leave a block or more
	// unnamed.
	read, uncovered int64
}

// prompt gives r its ids as segments: a block together with all before it has
// one id, so that they are the prompt's segments. The last block is cut where
// the prompt ends, or left out, so that it is unique, if partial is false.
// Tokens past the last id are the request's own.
func (b *blocks) prompt(p *place, r *record.Request, ids []hashID, partial bool) error {
	b.read++
	left := r.InputTokens
	for i, id := range ids {
		if left <= 0 {
			return p.Errorf("hash_ids has %d ids, but %d blocks of %d tokens hold the whole input of %d tokens (--block-size)",
				len(ids), i, b.size, r.InputTokens)
		}
		tokens := min(left, b.size)
		if left -= tokens; tokens == b.size || partial {
			r.Prompt = append(r.Prompt, record.Segment{ID: strconv.FormatInt(int64(id), 10), Tokens: tokens})
		}
	}
	if len(ids) > 0 && left >= b.size {
		b.uncovered++
	}
	return nil
}

// warnings says what is likely to be a mistake in the call.
func (b *blocks) warnings(p *place) []string {
	if b.uncovered == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the hash_ids of %d of %d prompts leave whole blocks of %d tokens unnamed, which are taken as unique; is --block-size right?",
		p.name, b.uncovered, b.read, b.size)}
}
