package strictyaml

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecode decodes large files of different forms. The time per entry must not
// grow with the number of entries. (Block mappings are an exception: the YAML
// library's parser takes quadratic time.)
func BenchmarkDecode(b *testing.B) {
	for _, form := range []struct{ name, begin, entry, end string }{
		{"list", "parts:\n", "  - {id: k%d, count: %[1]d}\n", ""},
		{"aliases", "extra: {x: &x 1}\nparts:\n", "  - {id: k%d, count: *x}\n", ""},
		{"keys", "extra: {", "k%d: %[1]d, ", "end: 0}\n"},
		{"unknown", "{", "k%d: %[1]d, ", "end: 0}\n"},
	} {
		for _, n := range []int{1000, 10000} {
			var text strings.Builder
			text.WriteString(form.begin)
			for i := range n {
				fmt.Fprintf(&text, form.entry, i)
			}
			text.WriteString(form.end)
			b.Run(fmt.Sprintf("%s/%d", form.name, n), func(b *testing.B) {
				for b.Loop() {
					var f file
					if err := decode(text.String(), &f); err != nil && form.name != "unknown" {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
			})
		}
	}
}
