package limits

import (
	"io"
	"strings"
	"testing"
)

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReadAllStopsAtTheLimit(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct {
		size int64
		ok   bool
	}{{0, true}, {limit - 1, true}, {limit, true}, {limit + 1, false}, {1 << 40, false}} {
		data, err := ReadAll(io.LimitReader(endless{}, c.size), "a.yaml", limit)
		if c.ok && (err != nil || int64(len(data)) != c.size) {
			t.Errorf("%d bytes: read %d, %v", c.size, len(data), err)
		}
		if want := "a.yaml: the file is larger than 1 MiB, the limit"; !c.ok && (err == nil || err.Error() != want) {
			t.Errorf("%d bytes: error %v, want %s", c.size, err, want)
		}
	}
	if _, err := ReadFile("/dev/zero", limit); err == nil {
		t.Error("/dev/zero was read")
	}
}

func TestEachPartHasTheLimit(t *testing.T) {
	r := NewReader(endless{}, "a row", 10)
	for range 3 {
		if n, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatalf("read %d: %v", n, err)
		}
		r.Next()
	}
	if n, err := io.ReadFull(r, make([]byte, 12)); err == nil || n > 11 {
		t.Errorf("read %d bytes of one row: %v", n, err)
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("é", 5000)
	for _, c := range []struct{ msg, want string }{
		{"", ""},
		{`unknown field "a b"; have "c"`, `unknown field "a b"; have "c"`},
		{strings.Repeat("short words ", 40), strings.Repeat("short words ", 40)},
		{`is "` + long + `\"", not "b"`, `is "` + strings.Repeat("é", 88) + `… (10004 bytes)", not "b"`},
		{`is "` + long, `is "` + strings.Repeat("é", 88) + `… (10001 bytes)"`},
	} {
		if got := Shorten(c.msg); got != c.want {
			t.Errorf("%.40s…:\n%q\nwant\n%q", c.msg, got, c.want)
		}
	}
	if got := Shorten("open " + long + ": missing"); len(got) > 4200 || !strings.HasSuffix(got, "bytes) missing") {
		t.Errorf("a long word became %d bytes: …%s", len(got), got[len(got)-40:])
	}
}
