package trace

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/textio"
)

// poolText is a pool of clients with the given lines for windows of 600 s.
func poolText(clients map[int][]string, dataset string) string {
	var b strings.Builder
	for n, windows := range clients {
		fmt.Fprintf(&b, "-- p/chunk-%d-trace.csv --\n", n)
		for i, w := range windows {
			fmt.Fprintf(&b, "%d,%s\n", 600*i, w)
		}
		fmt.Fprintf(&b, "-- p/chunk-%d-dataset.json --\n%s\n", n, dataset)
	}
	return b.String()
}

const plainDataset = `{"0": {"input_tokens": "{10: 0.5, 20: 0.25, 30: 0.25}", "output_tokens": "{1: 0.1, 2: 0.9}"}}`

func drawPool(t *testing.T, text string, seed uint64) []arrival {
	t.Helper()
	list, _, err := readAll("servegen", input(tarArchive(t, text)), Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Counts follow the rates of the windows, gaps their cv, and lengths their weights. n draws of a
// share p have the standard deviation √(p(1−p)/n), and four of them are allowed.
func TestServeGenFollowsWindows(t *testing.T) {
	for _, c := range []struct {
		pattern string
		cv      float64
	}{{"Gamma", 1}, {"Gamma", 2}, {"Weibull", 1.5}, {"Gamma", 0.5}} {
		quick := fmt.Sprintf("50,%g,%s,0,0", c.cv, c.pattern)
		slow := fmt.Sprintf("10,%g,%s,0,0", c.cv, c.pattern)
		list := drawPool(t, poolText(map[int][]string{7: {quick, "0,0,,0,0", slow, quick}}, plainDataset), 5)
		var counts [4]float64
		gaps, gapsSquared, n := 0.0, 0.0, 0.0
		lengths := map[int64]float64{}
		for i, a := range list {
			w := int(a.us / 600e6)
			counts[w]++
			lengths[a.Request.InputTokens]++
			if i > 0 && w == 0 {
				gap := a.us - list[i-1].us
				gaps, gapsSquared, n = gaps+gap, gapsSquared+gap*gap, n+1
			}
		}
		for i, want := range []float64{30000, 0, 6000, 30000} {
			// The count of a renewal process has variance cv²·mean.
			if math.Abs(counts[i]-want) > 4*math.Sqrt(want)*max(c.cv, 1)+1 {
				t.Errorf("%s %g: %g requests in window %d, want %g", c.pattern, c.cv, counts[i], i, want)
			}
		}
		mean := gaps / n
		if cv := math.Sqrt(gapsSquared/n-mean*mean) / mean; math.Abs(cv/c.cv-1) > 0.05 {
			t.Errorf("%s: gaps have cv %g, want %g", c.pattern, cv, c.cv)
		}
		all := float64(len(list))
		for tokens, p := range map[int64]float64{10: 0.5, 20: 0.25, 30: 0.25} {
			if math.Abs(lengths[tokens]/all-p) > 4*math.Sqrt(p*(1-p)/all) {
				t.Errorf("the share of %d tokens is %g, want %g", tokens, lengths[tokens]/all, p)
			}
		}
	}
}

// A client's requests do not depend on other clients, and they do depend on the seed.
func TestServeGenClientsAreIndependent(t *testing.T) {
	own := []string{"1,2,Gamma,0,0", "3,1,Weibull,0,0"}
	of := func(list []arrival, tenant string) (own []arrival) {
		for _, a := range list {
			if a.Request.Tenant == tenant {
				own = append(own, a)
			}
		}
		return own
	}
	alone := drawPool(t, poolText(map[int][]string{3: own}, plainDataset), 1)
	together := drawPool(t, poolText(map[int][]string{1: {"5,1,Gamma,0,0"}, 3: own, 20: own}, plainDataset), 1)
	if got := of(together, "p/3"); len(got) == 0 || !reflect.DeepEqual(got, alone) {
		t.Errorf("%d requests alone, %d in company, or others", len(alone), len(got))
	}
	if reflect.DeepEqual(alone, drawPool(t, poolText(map[int][]string{3: own}, plainDataset), 2)) {
		t.Error("the seed changes nothing")
	}
	for i := 1; i < len(together); i++ {
		if together[i].us < together[i-1].us {
			t.Fatalf("request %d comes before the one above it", i)
		}
	}
}

// The public pool of DeepSeek-R1 makes as many requests as its rates say.
func TestServeGenPublicPool(t *testing.T) {
	if testing.Short() {
		t.Skip("a pool of a day takes seconds")
	}
	path := data(t, "servegen/raw_subset.tar.gz")
	pool, err := readPool(Input{Name: path, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := pool.clients(1)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := pool.Warnings(); len(warnings) != 2 || !strings.Contains(warnings[0], "m-large/73 (no dataset)") ||
		!strings.Contains(warnings[1], "contains 3 pools") {
		t.Errorf("warnings %q", warnings)
	}
	want, got, n := 0.0, 0.0, 0
	for _, c := range clients {
		if !strings.HasPrefix(c.name, "deepseek-r1/") {
			continue
		}
		n++
		for _, w := range c.windows {
			want += w.rate * (w.end - w.start)
		}
		for c.advance(); !c.done(); c.advance() {
			got++
		}
	}
	if n != 73 || math.Abs(want-1383669) > 1 || math.Abs(got/want-1) > 0.02 {
		t.Errorf("%d clients make %g requests, their rates add up to %.0f", n, got, want)
	}
}

func TestEmpirical(t *testing.T) {
	e, err := parseEmpirical("{3: 1.0, 5: 0, 9: 3e0}")
	if err != nil {
		t.Fatal(err)
	}
	r := dist.NewStream(1, "empirical")
	counts := map[int64]float64{}
	const n = 40_000
	for range n {
		counts[e.draw(r)]++
	}
	// A quarter and three quarters, each within four standard deviations.
	if len(counts) != 2 || math.Abs(counts[3]/n-0.25) > 4*math.Sqrt(0.25*0.75/n) {
		t.Errorf("drawn %v", counts)
	}
}

// TestEmpiricalErrors: values are integers of at least 0, with weights of at least 0 that do not all vanish.
func TestEmpiricalErrors(t *testing.T) {
	for text, want := range map[string]string{"{0: 0.5, 2147483647: 1e9}": "", "{}": "",
		"{1: -1}":  "the weight of 1 must be",
		"{1: 2e9}": "the weight of 1 must be", "{1: NaN}": "the weight of 1 must be", "{1}": "the weight of 1 must be",
		"{-1: 1}": "a value must be", "{1.5: 1}": "a value must be", "{2147483648: 1}": "a value must be",
		"{1: 0, 2: 0}": "the weights add up to 0"} {
		_, err := parseEmpirical(text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestWindows: a window without a pattern or a rate has no requests, and an extreme cv counts as 100.
func TestWindows(t *testing.T) {
	p := &textio.Position{Name: "in", Line: 1}
	gap := func(line string) float64 {
		t.Helper()
		w, err := readWindow(p, line)
		if err != nil {
			t.Fatal(err)
		}
		if w.gaps == nil {
			return 0
		}
		return w.gaps(dist.NewStream(1, "gap"))
	}
	if gap("0,1,1,,0,0") != 0 || gap("0,0,1,Gamma,0,0") != 0 || gap("0,1,1,Gamma,0,0") == 0 {
		t.Error("a window without a pattern or a rate has requests, or one with both has none")
	}
	if a, b, c := gap("0,1,150,Weibull,0,0"), gap("0,1,100,Weibull,0,0"), gap("0,1,99,Weibull,0,0"); a != b || b == c {
		t.Errorf("gaps %v, %v and %v", a, b, c)
	}
	for line, want := range map[string]string{"0,1,1,Gamma,0": "in:1: must have the 6 columns",
		"-1,1,1,Gamma,0,0": "in:1: start must be a number", "0,x,1,Gamma,0,0": "in:1: rate must be a number",
		"0,1,1e10,Gamma,0,0": "in:1: cv must be a number", "0,1,1,Gama,0,0": `in:1: unknown pattern "Gama"`} {
		if _, err := readWindow(p, line); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for start, ok := range map[string]bool{"0": true, "600.5": true, "-5": false, "NaN": false, "x": false} {
		_, err := readLengths(p, strings.NewReader(strings.Replace(plainDataset, `"0"`, `"`+start+`"`, 1)))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "must be named by its start") {
			t.Errorf("a window at %s: %v", start, err)
		}
	}
}
