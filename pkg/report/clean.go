package report

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// longestName is how much of a name from outside is shown.
const longestName = 48

// secrets are forms that frameworks take for credentials and replace: the text would
// then say something else than was written.
var secrets = regexp.MustCompile(`(?i)(token|password)([=:])`)

// unlike makes text unlike a credential.
func unlike(text string) string { return secrets.ReplaceAllString(text, "$1 $2") }

// runs are the beginning of what such filters take for keys.
var runs = regexp.MustCompile(`[A-Za-z0-9]{32,}`)

// Cut marks a name of which only the beginning is shown.
const Cut = "~"

// name is a name from outside as one line of printable ASCII that no filter replaces;
// one that is too long ends with Cut.
func name(s string) string { return short(s, longestName) }

func short(s string, most int) string {
	q := strconv.QuoteToASCII(s)
	q = strings.NewReplacer(`\"`, `"`, `\\`, `\`, "`", "'").Replace(q[1 : len(q)-1])
	q = unlike(q)
	q = runs.ReplaceAllStringFunc(q, func(run string) string { return run[:12] + Cut })
	if strings.HasPrefix(q, "#") || strings.HasPrefix(q, "[") {
		q = "'" + q // the sign of a heading, or of a section
	}
	if len(q) > most {
		q = strings.TrimSuffix(q[:most-1], Cut) + Cut
	}
	return q
}

// or is s, or what stands for a name that is empty.
func or(s, none string) string { return name(cmp.Or(s, none)) }
