package mutation

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSample: each kind of change is made, and tests notice those that they check.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a package")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m.go": `package m

// Checked is compared with its table.
func Checked(n int) int {
	if n >= 10 {
		return 10
	}
	return n
}

// Loose only runs.
func Loose[T int | float64](x, y T) (T, string) {
	if x < y {
		return x * y, "a text"
	}
	return x, ""
}

// Unreached does not run.
func Unreached(all []bool) {
	all[0] = true
}
`,
		"m_plan9.go": `package m

func Checked(n int) bool { return n > 3 }
`,
		"m_test.go": `package m

import "testing"

func TestChecked(t *testing.T) {
	for n, want := range map[int]int{-1: -1, 9: 9, 10: 10, 11: 10} {
		if got := Checked(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

func TestLoose(t *testing.T) { Loose(1, 2) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	points, err := pointsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Test(dir, points, len(points), 2, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range m.Points {
		p := &m.Points[i]
		got[p.Func+" "+p.Old+" -> "+p.New] = m.Caught[i]
	}
	want := map[string]string{
		"Checked >= -> >":                       "", // the same, since 10 is 10 in both branches
		"Checked n >= 10 -> false && (n >= 10)": "TestChecked",
		"Checked n >= 10 -> true || (n >= 10)":  "TestChecked", "Checked 10 -> (10 + 1)": "TestChecked",
		"Loose < -> <=": "", "Loose x < y -> false && (x < y)": "", "Loose x < y -> true || (x < y)": "",
		"Loose * -> /": "", "Unreached 0 -> (0 + 1)": "", "Unreached true -> false": "",
		"Unreached all[0] = true -> if false { all[0] = true }": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for i := range m.Points {
		if reached := m.Reached[i] > 0; reached != (m.Points[i].Func != "Unreached") {
			t.Errorf("%s: reached by %d tests", m.Points[i].Key(), m.Reached[i])
		}
	}
}

// TestShuffled: a seed chooses the same points again, one in a line, and another seed others.
func TestShuffled(t *testing.T) {
	points, err := pointsOf(".")
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := shuffled(points, 1), shuffled(points, 1), shuffled(points, 2)
	if !slices.Equal(a, b) || slices.Equal(a[:20], c[:20]) {
		t.Error("seeds do not determine the order")
	}
	slices.Reverse(points)
	if b = shuffled(points, 1); len(a) != len(b) || a[0].Text != b[0].Text {
		t.Error("the order depends on the order of the files")
	}
}
