package expr

import (
	"strings"
	"testing"
)

// history is a scope with a table and a list.
type history struct{ loads []float64 }

func historyFields() []Field[history] {
	return []Field[history]{
		{Name: "d.share", Type: Number, ByKey: func(_ *history, key string) float64 { return float64(len(key)) }},
		{Name: "d.load", Type: Number, ByIndex: func(h *history, i int) float64 {
			if i < len(h.loads) {
				return h.loads[i]
			}
			return 0
		}},
		{Name: "d.n", Type: Number, Number: func(h *history) float64 { return float64(len(h.loads)) }},
	}
}

// TestElements: elements of tables and lists are numbers of closures.
func TestElements(t *testing.T) {
	h := &history{loads: []float64{5, 3}}
	for src, want := range map[string]float64{
		`d.share["abc"]`:                                      3,
		`d.load[0] - d.load[1] + d.load[7]`:                   2,
		`max(d.load[0], d.share["x"]) * d.n`:                  10,
		`d.load[1] > 2 && d.share["ab"] == 2 ? d.load[0] : 0`: 5,
	} {
		e, err := Compile(src, historyFields(), Number)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if x, err := e.Number(h); err != nil || x != want || !e.Closure() {
			t.Errorf("%s is %v (error %v, closure %v), want %v", src, x, err, e.Closure(), want)
		}
	}
	e, err := Compile(`d.load[0] + d.load[1] * d.load[0]`, historyFields(), Number)
	if err != nil || strings.Join(e.Uses(), " ") != "d.load[0] d.load[1]" {
		t.Errorf("uses %v, error %v", e.Uses(), err)
	}
}

// TestElementErrors: a table or a list is no value itself, and its indexes are literals.
func TestElementErrors(t *testing.T) {
	for src, want := range map[string]string{
		`1 + d.load`:        `1:5: d.load has elements, such as d.load[0]`,
		`d.load["a"]`:       `1:1: the index of d.load must be written out, such as d.load[0]`,
		`d.share[0]`:        `1:1: the index of d.share must be written out, such as d.share["interactive"]`,
		`d.load[int(d.n)]`:  `1:1: the index of d.load must be written out, such as d.load[0]`,
		`d.load[-1]`:        `1:1: the index of d.load must be written out, such as d.load[0]`,
		`d.n[0]`:            `1:4: `,
		`size(d.share) > 1`: `1:6: d.share has elements, such as d.share["interactive"]`,
	} {
		if _, err := Compile(src, historyFields(), Number, Flag); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", src, err, want)
		}
	}
}
