// Mutate changes packages of decisions and numbers in small ways, one at a time, and reports which changes tests do
// not notice.
//
//	go run ./pkg/internal/mutation/mutate [-n 25] [-seed 1] [-part 1] [-workers 2] [-users] [-v] [PACKAGE...]
//
// PACKAGE is a folder below pkg, such as diff; all of them by default. A change that no test of its package notices
// is a survivor. With -users, the tests of the simulator (pkg/sim) and of the tools (pkg/cli) run for survivors, too.
// A change has a minute of tests in each package, the shortest first. The survivors of seed 1 that
// remain are listed with reasons in survivors.txt. The exit code is 1 if another one is found, if more than 10 %
// of a package's changes remain, or if a listed one is noticed.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"blis/pkg/internal/mutation"
)

// packages make decisions or compute numbers.
var packages = strings.Fields("anomaly attribution calibrate capacity cluster deploy des diff dist engine expr " +
	"filter fitness gen hardware kv latency leastsq limits link llmd metrics model operators parquet plan policy " +
	"portable recording resample scale sim stat stream strictyaml summarize sweep textio tier trace workloadstats")

// skipped are tests that take minutes and compare texts of the sources or build other binaries.
const skipped = "Mutation|Teeth|Notice"

//go:embed survivors.txt
var survivors string

// listed returns the reasons of survivors by key.
func listed() map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(survivors) {
		line = strings.TrimSuffix(line, "\n")
		if key, reason, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			reasons[key] = reason
		}
	}
	return reasons
}

// row is a package of the table.
type row struct {
	name string
	*mutation.Mutants
	// byUsers holds the test of the simulator or the tools that alone notices a change.
	byUsers map[int]string
}

func main() {
	n := flag.Int("n", 25, "changes of each package")
	seed := flag.Uint64("seed", 1, "which changes")
	part := flag.Int("part", 1, "test one package in this many; the sources choose which")
	workers := flag.Int("workers", 2, "tests that run at a time")
	users := flag.Bool("users", false, "run the tests of sim and cli for survivors")
	verbose := flag.Bool("v", false, "print changes that are noticed, too")
	flag.Parse()
	chosen := flag.Args()
	if len(chosen) == 0 {
		chosen = packages
	}
	var rows []row
	failed := false
	for i, name := range chosen {
		if *part > 1 && i%*part != offset(*part) {
			continue
		}
		m, err := mutation.Sample(filepath.Join("pkg", name), *n, *seed, *workers, skipped)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
			continue
		}
		r := row{name, m, map[int]string{}}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %d of %d remain\n", name, len(r.remaining()), len(m.Points))
	}
	for _, dir := range []string{"pkg/sim", "pkg/cli"} {
		if !*users {
			break
		}
		if err := testUser(dir, rows, *workers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	fmt.Printf("%-14s %6s %6s %8s %9s %9s\n", "package", "made", "own", "by users", "survivors", "unlisted")
	for _, r := range rows {
		failed = !r.print(*seed, *verbose) || failed
	}
	if failed {
		os.Exit(1)
	}
}

// remaining are the numbers of the changes that no test notices.
func (r *row) remaining() (numbers []int) {
	for i := range r.Points {
		if r.Caught[i] == "" && r.byUsers[i] == "" {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// testUser runs the tests of a package that uses the others for their survivors.
func testUser(dir string, rows []row, workers int) error {
	var points []mutation.Point
	for i := range rows {
		for _, n := range rows[i].remaining() {
			points = append(points, rows[i].Points[n])
		}
	}
	m, err := mutation.Test(dir, points, len(points), workers, skipped)
	if err != nil {
		return err
	}
	caught := map[mutation.Point]string{}
	for i, p := range m.Points {
		caught[p] = m.Caught[i]
	}
	for i := range rows {
		for _, n := range rows[i].remaining() {
			rows[i].byUsers[n] = caught[rows[i].Points[n]]
		}
	}
	return nil
}

// offset chooses a part by the texts of all sources.
func offset(parts int) int {
	h := fnv.New64a()
	for _, name := range packages {
		files, _ := filepath.Glob(filepath.Join("pkg", name, "*.go")) // the pattern is valid
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				h.Write(text)
			}
		}
	}
	return int(h.Sum64() % uint64(parts))
}

// print prints the package and its survivors. It returns whether they are few and listed.
func (r *row) print(seed uint64, verbose bool) bool {
	reasons := listed()
	var lines []string
	own, byUsers, unlisted, stale := 0, 0, 0, 0
	for i := range r.Points {
		p := &r.Points[i]
		reason, isListed := reasons[p.Key()]
		by := r.Caught[i]
		if by != "" {
			own++
		} else if by = r.byUsers[i]; by != "" {
			byUsers++
		}
		switch {
		case by != "" && isListed && seed == 1:
			stale++
			lines = append(lines, "  listed, but noticed by "+by+": "+p.Key())
		case by != "" && verbose:
			lines = append(lines, "  noticed by "+by+": "+p.Key())
		case by != "":
		case isListed:
			lines = append(lines, "  "+p.Key()+"\n      "+reason)
		default:
			unlisted++
			lines = append(lines, fmt.Sprintf("  SURVIVED, line %d (%d tests): %s", p.Line, r.Reached[i], p.Key()))
		}
	}
	left := len(r.remaining())
	fmt.Printf("%-14s %6d %6d %8d %9d %9d\n", r.name, len(r.Points), own, byUsers, left, unlisted)
	for _, line := range lines {
		fmt.Println(line)
	}
	return unlisted == 0 && stale == 0 && 10*left <= len(r.Points)
}
