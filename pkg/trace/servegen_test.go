package trace

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"blis/pkg/dist"
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
