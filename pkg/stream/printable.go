package stream

import (
	"strconv"
	"strings"
)

// ShortDigest is a digest as people compare it: 12 digits of it.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }

// Printable is a name of the wire, which may hold anything, as a terminal is shown it:
// with what is not printable ASCII escaped.
func Printable(name string) string {
	q := strconv.QuoteToASCII(name)
	q = q[1 : len(q)-1]
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q)
}
