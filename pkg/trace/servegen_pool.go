package trace

import (
	"archive/tar"
	"bufio"
	"cmp"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/registry"
	"blis/pkg/textio"
)

// pool holds the client files of a folder or an archive, whose name is in errors.
type pool struct {
	textio.Position
	files []poolFile
}

// poolFile holds the parsed files of one client.
type poolFile struct {
	folder  string // of its files
	number  int
	windows []window
	lengths []lengths
	// hasTrace and hasDataset say which of the two files exist.
	hasTrace, hasDataset bool
}

var chunkName = regexp.MustCompile(`^chunk-(\d{1,9})-(trace\.csv|dataset\.json)$`)

// readPool reads all client files in a folder or an archive.
func readPool(in Input) (*pool, error) {
	p := &pool{Position: textio.Position{Name: in.Name}}
	if info, err := os.Stat(in.Path); in.Path != "" && err == nil && info.IsDir() {
		err = filepath.WalkDir(in.Path, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !chunkName.MatchString(entry.Name()) {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return p.add(name, f)
		})
		return p, err
	}
	t, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	archive := tar.NewReader(t)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, t) // detects truncated compressed data
			if err == nil {
				return p, nil
			}
		}
		if err != nil {
			return nil, p.Errorf("is neither a folder nor a tar archive: %v", err)
		}
		if h.Typeflag == tar.TypeReg && chunkName.MatchString(path.Base(h.Name)) {
			if err := p.add(in.Name+"/"+h.Name, archive); err != nil {
				return nil, err
			}
		}
	}
}

// add reads one file.
func (p *pool) add(name string, in io.Reader) error {
	parts := chunkName.FindStringSubmatch(path.Base(filepath.ToSlash(name)))
	number, _ := strconv.Atoi(parts[1])
	folder := filepath.Dir(name)
	at := slices.IndexFunc(p.files, func(f poolFile) bool { return f.folder == folder && f.number == number })
	if at < 0 {
		at = len(p.files)
		p.files = append(p.files, poolFile{folder: folder, number: number})
	}
	f := &p.files[at]
	where := &textio.Position{Name: name}
	var err error
	if parts[2] == "trace.csv" {
		f.hasTrace = true
		f.windows, err = readWindows(where, in)
	} else {
		f.hasDataset = true
		f.lengths, err = readLengths(where, in)
	}
	return err
}

// clients returns the active clients of the pool, by folder and number.
func (p *pool) clients(seed uint64) (clients []*poolClient, err error) {
	slices.SortFunc(p.files, func(a, b poolFile) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), cmp.Compare(a.number, b.number))
	})
	var folders, pools, without []string
	for _, f := range p.files {
		base := filepath.Base(f.folder)
		if !slices.Contains(folders, f.folder) {
			if slices.Contains(pools, base) {
				return nil, p.Errorf("contains clients in two folders named %s; use one of the folders", base)
			}
			folders, pools = append(folders, f.folder), append(pools, base)
		}
		c := &poolClient{name: base + "/" + strconv.Itoa(f.number), windows: f.windows, lengths: f.lengths}
		active := slices.ContainsFunc(f.windows, func(w window) bool { return w.rate > 0 && w.gaps != nil })
		switch {
		case !f.hasTrace:
			without = append(without, c.name+" (no trace)")
		case !f.hasDataset:
			without = append(without, c.name+" (no dataset)")
		case active && len(f.lengths) == 0:
			without = append(without, c.name+" (no lengths)")
		case active:
			stream := func(name string) *rand.Rand { return dist.NewStream(seed, "servegen/"+c.name+"/"+name) }
			c.arrivals, c.inputs, c.outputs = stream("arrivals"), stream("input"), stream("output")
			clients = append(clients, c)
		}
	}
	if len(clients) == 0 && len(without) == 0 {
		return nil, p.Errorf("contains no clients: no files chunk-N-trace.csv and chunk-N-dataset.json")
	}
	if len(without) > 0 {
		p.Warnf("left out incomplete clients: %s", strings.Join(without, ", "))
	}
	if len(pools) > 1 {
		p.Warnf("contains %d pools and uses all clients: %s; --where 'tenant.startsWith(\"%s/\")' keeps one",
			len(pools), strings.Join(pools, ", "), pools[0])
	}
	return clients, nil
}

// patterns maps ServeGen's names of gap distributions to ours.
var patterns = registry.Table[string]{{Name: "Gamma", Value: "gamma"}, {Name: "Weibull", Value: "weibull"}}

// readWindows reads lines of start (s), rate, cv, pattern and its two parameters. A window lasts
// until the next one, the last one as long as the one before.
func readWindows(p *textio.Position, in io.Reader) ([]window, error) {
	var all []window
	lines := bufio.NewScanner(in)
	for p.Line = 1; lines.Scan(); p.Line++ {
		w, err := readWindow(p, lines.Text())
		if err != nil {
			return nil, err
		}
		if n := len(all); n > 0 && w.start <= all[n-1].start {
			return nil, p.Errorf("the window begins at %g s, not after the one before", w.start)
		}
		all = append(all, w)
	}
	if err := lines.Err(); err != nil {
		return nil, p.Errorf("%v", err)
	}
	for i := range all {
		switch n := len(all); {
		case i+1 < n:
			all[i].end = all[i+1].start
		case n > 1:
			all[i].end = all[i].start + all[i].start - all[i-1].start
		default:
			all[i].end = all[i].start + 600
		}
	}
	return all, nil
}

func readWindow(p *textio.Position, line string) (w window, err error) {
	columns := strings.Split(strings.TrimSpace(line), ",")
	if len(columns) != 6 {
		return w, p.Errorf("must have the 6 columns start,rate,cv,pattern,parameter,parameter, has %d", len(columns))
	}
	var cv float64
	for _, c := range []struct {
		name string
		text string
		into *float64
	}{{"start", columns[0], &w.start}, {"rate", columns[1], &w.rate}, {"cv", columns[2], &cv}} {
		v, err := strconv.ParseFloat(c.text, 64)
		if err != nil || !(v >= 0 && v <= math.MaxInt32) {
			return w, p.Errorf("%s must be a number between 0 and %d, is %q", c.name, math.MaxInt32, c.text)
		}
		*c.into = v
	}
	if columns[3] == "" || w.rate == 0 {
		return w, nil
	}
	process, err := patterns.Get("pattern", columns[3])
	if err != nil {
		return w, p.Errorf("%v", err)
	}
	// Some windows with few requests have an extreme cv.
	cv = min(max(cv, 0.01), 100)
	// A rate of a million per second has a mean gap of 1 (µs).
	if w.gaps, err = (dist.Arrival{Process: process, CV: &cv}).Gaps(1e6); err != nil {
		return w, p.Errorf("%v", err)
	}
	return w, nil
}
