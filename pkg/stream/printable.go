package stream

import (
	"strconv"
	"strings"
)

// ShortDigest is the first 12 digits of a digest, as shown to users.
func ShortDigest(digest string) string { return digest[:min(12, len(digest))] }

// Printable returns name with everything but printable ASCII escaped, so that a
// terminal can show any name found in a stream.
func Printable(name string) string {
	q := strconv.QuoteToASCII(name)
	q = q[1 : len(q)-1]
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q)
}
