// Package limits bounds what a file of a stranger can cost: the bytes that are read into memory, and the length
// of what messages quote of it.
package limits

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// The largest sizes, in bytes.
const (
	// Config is that of a file that people write, and of a model's config.json.
	Config = 16 << 20
	// Row is that of a row or value of a trace or recording: a prompt of ten million tokens in blocks of 16 has
	// about 6 MB of hash ids.
	Row = 16 << 20
	// Document is that of a recording that is held in memory.
	Document = 1 << 30
)

// Error says that an input is too large to be read.
type Error struct {
	// File is "" where the caller names it. Part is the file or a part of it, such as "a row".
	File, Part string
	// Bytes is the limit.
	Bytes int64
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("%s is larger than %d MiB, the limit", e.Part, e.Bytes>>20)
	if e.File == "" {
		return msg
	}
	return e.File + ": " + msg
}

// Reader reads a file in parts of a limited size.
type Reader struct {
	r    io.Reader
	err  Error
	left int64
}

// NewReader returns a reader of r. Each part has at most limit bytes; errors call it part.
func NewReader(r io.Reader, part string, limit int64) *Reader {
	return &Reader{r, Error{"", part, limit}, limit + 1}
}

// Next begins the next part.
func (l *Reader) Next() { l.left = l.err.Bytes + 1 }

func (l *Reader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	if l.left -= int64(n); l.left <= 0 {
		return n, &l.err
	}
	return n, err
}

// ReadFile reads the file called name, of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, name, limit)
}

// ReadAll reads at most limit bytes to the end of r, which errors call name.
func ReadAll(r io.Reader, name string, limit int64) ([]byte, error) {
	limited := NewReader(r, "the file", limit)
	limited.err.File = name
	return io.ReadAll(limited)
}

// maxQuote is the maximum length of what a message quotes, and maxWord that of a word outside of quotes, which
// may be a path, in bytes.
const (
	maxQuote = 200
	maxWord  = 4096
)

// Shorten shortens the quotes and the words of a message that are too long.
func Shorten(msg string) string {
	if len(msg) <= maxQuote {
		return msg
	}
	var b strings.Builder
	for len(msg) > 0 {
		n, limit := partLength(msg)
		if n <= limit {
			b.WriteString(msg[:n])
		} else {
			end := limit - len(`… (10 digits bytes)"`)
			for !utf8.RuneStart(msg[end]) {
				end--
			}
			fmt.Fprintf(&b, "%s… (%d bytes)", msg[:end], n)
			if msg[0] == '"' {
				b.WriteByte('"')
			}
		}
		msg = msg[n:]
	}
	return b.String()
}

// partLength returns the length of the quote, the word or the blanks that msg begins with, and its limit.
func partLength(msg string) (n, limit int) {
	if msg[0] == ' ' {
		return len(msg) - len(strings.TrimLeft(msg, " ")), maxQuote
	}
	if msg[0] != '"' {
		if n = strings.IndexAny(msg, ` "`); n < 0 {
			n = len(msg)
		}
		return n, maxWord
	}
	for n = 1; n < len(msg); n++ {
		switch msg[n] {
		case '\\':
			n++
		case '"':
			return n + 1, maxQuote
		}
	}
	return len(msg), maxQuote
}
