// Mutate changes packages of decisions and numbers in small ways, one at a time, and reports which changes tests do
// not notice.
//
//	go run ./pkg/internal/mutation/mutate [-n 25] [-seed 1] [-part 1] [-workers 2] [-users] [-v] [PACKAGE...]
//
// PACKAGE is a folder below pkg, such as diff; all of them by default. A change that no test of its package notices
// is a survivor. With -users, the tests of the simulator (pkg/sim) and of the tools (pkg/cli) run for survivors, too.
// A change has a minute of tests in each package, the shortest first. The survivors of seed 1 are listed with reasons
// in survivors.txt. The exit code is 1 if another one is found, if a listed one is noticed, or if more than 10 % of a
// package's changes survive, without those that change nothing.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"blis/pkg/internal/mutation"
)

// packages make decisions or compute numbers.
var packages = strings.Fields("anomaly attribution calibrate capacity chart cluster deploy des diff dist engine " +
	"expr figures filter fitness gen hardware htmlreport kv latency leastsq limits link llmd llmtext metrics model " +
	"operators parquet plan policy portable recording registry report resample scale script sim stat stream " +
	"strictyaml summarize sweep textio texttab tier trace workloadstats")

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

// options are the flags.
type options struct {
	n, part, workers int
	seed             uint64
	users, verbose   bool
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 25, "changes of each package")
	flag.Uint64Var(&o.seed, "seed", 1, "which changes")
	flag.IntVar(&o.part, "part", 1, "test one package in this many; the sources choose which")
	flag.IntVar(&o.workers, "workers", 2, "tests that run at a time")
	flag.BoolVar(&o.users, "users", false, "run the tests of sim and cli for survivors")
	flag.BoolVar(&o.verbose, "v", false, "print all changes that are noticed")
	flag.Parse()
	chosen := flag.Args()
	if len(chosen) == 0 {
		chosen = packages
	}
	var rows []row
	failed := false
	for i, name := range chosen {
		if o.part > 1 && i%o.part != offset(o.part) {
			continue
		}
		m, err := mutation.Sample(filepath.Join("pkg", name), o.n, o.seed, o.workers, skipped)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
			continue
		}
		r := row{name, m, map[int]string{}}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %d of %d remain\n", name, len(r.remaining()), len(m.Points))
		for _, n := range r.remaining() {
			fmt.Fprintf(os.Stderr, "  %s\n", m.Points[n].Key())
		}
	}
	for _, dir := range []string{"pkg/sim", "pkg/cli"} {
		if !o.users {
			break
		}
		if err := testUser(dir, rows, o.workers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	fmt.Printf("%-14s %6s %6s %8s %10s %9s %6s\n", "package", "made", "own", "by users", "equivalent", "survivors",
		"wrong")
	for _, r := range rows {
		failed = !r.print(o) || failed
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
	out, err := exec.Command("go", "list", "-deps", "./"+dir).Output()
	if err != nil {
		return err
	}
	var points []mutation.Point
	for i := range rows {
		if !strings.Contains(string(out), "/pkg/"+rows[i].name+"\n") {
			continue
		}
		for _, n := range rows[i].remaining() {
			points = append(points, rows[i].Points[n])
		}
	}
	if len(points) == 0 {
		return nil
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

// The first words of reasons. Changes of the first kind do not change what the package does. Those of the second are
// noticed by tests of the simulator or the tools, which -users verifies.
const (
	equivalent = "equivalent"
	byUsers    = "noticed by users"
)

// print prints the package and its survivors. It returns whether they are few and listed.
func (r *row) print(o options) bool {
	reasons := listed()
	var lines []string
	own, users, same, left, wrong := 0, 0, 0, 0, 0
	for i := range r.Points {
		p := &r.Points[i]
		reason, isListed := reasons[p.Key()]
		byTest := r.Caught[i]
		switch {
		case byTest != "":
			own++
		case r.byUsers[i] != "":
			byTest = r.byUsers[i]
			users++
		case strings.HasPrefix(reason, byUsers) && !o.users:
			users++
		case strings.HasPrefix(reason, equivalent):
			same++
		default:
			left++
		}
		isUsers := strings.HasPrefix(reason, byUsers)
		switch {
		case byTest != "" && isListed && o.seed == 1 && (!isUsers || r.Caught[i] != ""):
			wrong++
			lines = append(lines, "  LISTED, but noticed by "+byTest+": "+p.Key())
		case byTest == "" && (!isListed || isUsers && o.users):
			wrong++
			lines = append(lines, fmt.Sprintf("  SURVIVED, line %d (%d tests): %s", p.Line, r.Reached[i], p.Key()))
		case byTest == "":
			lines = append(lines, "  "+p.Key()+"\n      "+reason)
		case o.verbose || r.byUsers[i] != "" && !isListed:
			lines = append(lines, "  noticed by "+byTest+": "+p.Key())
		}
	}
	fmt.Printf("%-14s %6d %6d %8d %10d %9d %6d\n", r.name, len(r.Points), own, users, same, left, wrong)
	for _, line := range lines {
		fmt.Println(line)
	}
	return wrong == 0 && 10*left <= len(r.Points)-same
}
