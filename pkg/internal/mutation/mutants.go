package mutation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Mutants are points, and what tests say about them.
type Mutants struct {
	Points []Point
	// Caught holds the test that failed with each point, or that ran too long; "" if none did.
	Caught []string
	// Reached counts the tests that execute the function of each point.
	Reached []int
}

// shuffled returns points in an order that the seed and the texts of their lines determine, so that a change to other
// lines does not change it. One point of a line stays.
func shuffled(points []Point, seed uint64) []Point {
	rank := func(p *Point) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", seed, p.Key())
		return h.Sum64()
	}
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(rank(&a), rank(&b)) })
	type place struct{ name, text string }
	seen := map[place]bool{}
	return slices.DeleteFunc(sorted, func(p Point) bool {
		at := place{p.Name, p.Text}
		defer func() { seen[at] = true }()
		return seen[at]
	})
}

// runner runs the tests of the package in a folder, without those that skip matches, workers at a time.
type runner struct {
	dir, binary, skip string
	workers           int
	// flags keep rapid from storing cases that fail with a mutation.
	flags []string
}

// Sample runs the tests of the package in dir, without those that skip matches, for n points of it that the
// seed chooses.
func Sample(dir string, n int, seed uint64, workers int, skip string) (*Mutants, error) {
	points, err := pointsOf(dir)
	if err != nil {
		return nil, err
	}
	return Test(dir, shuffled(points, seed), n, workers, skip)
}

// Test runs the tests of the package in dir, without those that skip matches, for the first n of the points that
// compile. They may be of several packages.
func Test(dir string, points []Point, n, workers int, skip string) (*Mutants, error) {
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	r := runner{dir, filepath.Join(temp, "mutants.test"), skip, workers, nil}
	sample, err := r.build(temp, points, n)
	if err != nil {
		return nil, err
	}
	const noFiles = "-rapid.nofailfile"
	if r.command(-1, noFiles, "-test.list", "^$").Run() == nil {
		r.flags = []string{noFiles}
	}
	m := &Mutants{Points: sample, Caught: make([]string, len(sample)), Reached: make([]int, len(sample))}
	reach, err := r.reach(filepath.Join(temp, "reached"), len(sample))
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	numbers := make(chan int)
	for range workers {
		group.Go(func() {
			for i := range numbers {
				m.Reached[i] = len(reach[i])
				m.Caught[i] = r.catch(i, reach[i])
			}
		})
	}
	for i := range sample {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	return m, nil
}

// build compiles the package's tests with the first n points that can be compiled: others change a function without
// names for its parameters, or have no types.
func (r *runner) build(temp string, points []Point, n int) ([]Point, error) {
	for {
		files := map[string]*mutatedFile{}
		var kept []Point
		for _, p := range points {
			if len(kept) == n {
				break
			}
			f := files[p.File]
			if f == nil {
				text, err := os.ReadFile(p.File)
				if err != nil {
					return nil, err
				}
				f = &mutatedFile{text: text, named: map[token.Pos]bool{}}
				files[p.File] = f
			}
			i := len(kept)
			if ok, err := f.replace(p.From, p.To, p.New, fmt.Sprintf("Mutant%d_", i),
				fmt.Sprintf("isActiveMutant(%d)", i)); err == nil && ok {
				kept = append(kept, p)
			}
		}
		overlay := map[string][]byte{}
		for path, f := range files {
			if len(f.insertions) > 0 {
				overlay[path] = f.apply()
				overlay[filepath.Join(filepath.Dir(path), "active_mutant.go")] =
					fmt.Appendf(nil, activeMutant, f.name, len(kept))
			}
		}
		out, err := compile(temp, r.dir, r.binary, overlay)
		if err == nil {
			return kept, nil
		}
		wrong := notCompiled(out, overlay)
		if len(wrong) == 0 {
			return nil, fmt.Errorf("%s: compiling mutants: %w\n%s", r.dir, err, out)
		}
		points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
			i := slices.Index(kept, p)
			return i >= 0 && wrong[i]
		})
	}
}

// activeMutant is a file for the package: which point is active, and which are reached.
const activeMutant = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var activeMutantNumber = func() int {
	i, err := strconv.Atoi(os.Getenv("BLIS_MUTATION"))
	if err != nil {
		return -1
	}
	return i
}()

var reachedMutantsFile = os.Getenv("BLIS_MUTANTS_REACHED")

var reachedMutants [%d + 1]atomic.Bool

func isActiveMutant(i int) bool {
	if reachedMutantsFile != "" && !reachedMutants[i].Swap(true) {
		if f, err := os.OpenFile(reachedMutantsFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			f.WriteString(strconv.Itoa(i) + "\n")
			f.Close()
		}
	}
	return i == activeMutantNumber
}
`

// compilerError is a line of the compiler about an overlaid file.
var compilerError = regexp.MustCompile(`(?m)^([^ :]+\.go):(\d+):`)

// mutantName is the name of a copy of a function.
var mutantName = regexp.MustCompile(`Mutant(\d+)_\(`)

// notCompiled returns the numbers of the points whose copies hold errors of the compiler.
func notCompiled(out []byte, overlay map[string][]byte) map[int]bool {
	wrong := map[int]bool{}
	for _, e := range compilerError.FindAllSubmatch(out, -1) {
		for path, text := range overlay {
			if !strings.HasSuffix(filepath.Base(string(e[1])), "-"+filepath.Base(path)) {
				continue
			}
			lines := bytes.Split(text, []byte("\n"))
			at, err := strconv.Atoi(string(e[2]))
			if err != nil {
				continue
			}
			for i := min(at, len(lines)) - 1; i >= 0; i-- { // up to the function
				if !bytes.HasPrefix(lines[i], []byte("func ")) {
					continue
				}
				if m := mutantName.FindSubmatch(lines[i]); m != nil {
					if n, err := strconv.Atoi(string(m[1])); err == nil {
						wrong[n] = true
					}
				}
				break
			}
		}
	}
	return wrong
}

// maxTest is the time after which a test is left out.
const maxTest = 5 * time.Minute

// test is a test that reaches a point, and its time without mutation.
type test struct {
	name string
	took time.Duration
}

// testName matches what runs without a flag.
var testName = regexp.MustCompile("^(Test|Fuzz|Example)")

// tests are the names of the tests that -test.run selects. Those of scripts are subtests.
func (r *runner) tests() (all []string, err error) {
	list, err := r.command(-1, "-test.list", ".").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: listing tests: %w", r.dir, err)
	}
	skip, err := regexp.Compile(cmp.Or(r.skip, "^$"))
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		switch {
		case !testName.MatchString(name) || skip.MatchString(name):
		case name == "TestScripts":
			scripts, err := filepath.Glob(filepath.Join(r.dir, "../../testdata/script/*.txtar"))
			if err != nil {
				return nil, err
			}
			for _, s := range scripts {
				all = append(all, "^TestScripts$/^"+strings.TrimSuffix(filepath.Base(s), ".txtar")+"$")
			}
		default:
			all = append(all, "^"+name+"$")
		}
	}
	return all, nil
}

// reach runs each test by itself and returns those that execute each of the points, the shortest first.
func (r *runner) reach(file string, points int) ([][]test, error) {
	all, err := r.tests()
	if err != nil {
		return nil, err
	}
	reach := make([][]test, points)
	var failed error
	var mu sync.Mutex
	var group sync.WaitGroup
	numbers := make(chan int)
	one := func(n int) {
		own, name := fmt.Sprintf("%s-%d", file, n), all[n]
		command := r.command(-1, "-test.timeout", maxTest.String(), "-test.run", name)
		command.Env = append(command.Env, "BLIS_MUTANTS_REACHED="+own)
		start := time.Now()
		out, err := command.CombinedOutput()
		took := time.Since(start)
		text, _ := os.ReadFile(own) // none if nothing is reached
		mu.Lock()
		defer mu.Unlock()
		if took >= maxTest {
			return
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s fails without a mutation: %w\n%s", r.dir, name, err, out))
			return
		}
		seen := map[int]bool{}
		for line := range strings.Lines(string(text)) {
			if i, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && i < points && !seen[i] {
				seen[i] = true
				reach[i] = append(reach[i], test{name, took})
			}
		}
	}
	for range r.workers {
		group.Go(func() {
			for n := range numbers {
				one(n)
			}
		})
	}
	for n := range all {
		numbers <- n
	}
	close(numbers)
	group.Wait()
	for i := range reach {
		slices.SortFunc(reach[i], func(a, b test) int {
			return cmp.Or(cmp.Compare(a.took, b.took), strings.Compare(a.name, b.name))
		})
	}
	return reach, failed
}

// command calls the test binary with an active point.
func (r *runner) command(active int, args ...string) *exec.Cmd {
	limited := slices.Concat([]string{"-c", `ulimit -v 8000000; exec "$0" "$@"`, r.binary}, r.flags, args)
	command := exec.Command("sh", limited...)
	command.Dir = r.dir
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, active))
	return command
}

// maxTests is about the time of all tests of a point, and together that of one call.
const (
	maxTests = time.Minute
	together = 3 * time.Second
)

// isScript reports whether a name is that of a subtest.
func isScript(name string) bool { return strings.Contains(name, "/") }

// catch returns the first of the tests that fails with a point. Short tests run together before long ones.
func (r *runner) catch(active int, tests []test) string {
	for spent := time.Duration(0); len(tests) > 0 && spent < maxTests; {
		n, total := 1, tests[0].took
		for n < len(tests) && total+tests[n].took < together && !isScript(tests[0].name) && !isScript(tests[n].name) {
			total += tests[n].took
			n++
		}
		spent += total
		names := make([]string, n)
		for i, t := range tests[:n] {
			names[i] = t.name
		}
		limit := 20*time.Second + 10*total
		command := r.command(active, "-test.failfast", "-test.timeout", limit.String(),
			"-test.run", strings.Join(names, "|"))
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, io.Discard
		if command.Run() != nil {
			for line := range strings.Lines(out.String()) {
				if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "---" && fields[1] == "FAIL:" {
					return fields[2]
				}
			}
			return "a crash or the time of " + names[0]
		}
		tests = tests[n:]
	}
	return ""
}
