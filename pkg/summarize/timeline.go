package summarize

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"blis/pkg/perfetto"
	"blis/pkg/stream"
)

// watcher receives the records of a run, and outcomes decoded.
type watcher interface {
	Record(r *stream.Reader, o *stream.Outcome) error
}

// timeline is the file of a timeline; nil is none.
type timeline struct {
	*perfetto.Trace
	file *stream.File
	zip  *gzip.Writer
}

// checkFiles checks the flags that name additional output files.
func (o *Options) checkFiles() error {
	if o.Perfetto == "" {
		return nil
	}
	switch {
	case !strings.HasSuffix(o.Perfetto, ".json") && !strings.HasSuffix(o.Perfetto, ".json.gz"):
		return fmt.Errorf("--perfetto %s: the name must end in .json or .json.gz", o.Perfetto)
	case len(o.streams()) > 1:
		return errors.New("--perfetto shows one run; name a single stream")
	case o.Where.matches != nil:
		return errors.New("--where has no effect on --perfetto; --from and --to select a part of the timeline")
	}
	return nil
}

// createTimeline begins the file of the timeline, if one is asked for.
func (o *Options) createTimeline() (*timeline, error) {
	if o.Perfetto == "" {
		return nil, nil
	}
	file, err := stream.Create(o.Perfetto)
	if err != nil {
		return nil, err
	}
	t := &timeline{file: file}
	var out io.Writer = file
	if strings.HasSuffix(o.Perfetto, ".gz") {
		t.zip = gzip.NewWriter(file)
		out = t.zip
	}
	t.Trace = perfetto.New(out)
	to := stream.Never
	if o.To.isSet {
		to = o.To.at
	}
	t.Window(o.From.at, to)
	return t, nil
}

// Record adds the current record. Streams without requests that happened are errors.
func (t *timeline) Record(r *stream.Reader, o *stream.Outcome) error {
	if h := r.Header(); r.Kind() == stream.KindHeader {
		if h.Stream == stream.StreamWorkload {
			return r.Errorf("--perfetto shows runs and recordings; this is a workload")
		}
		if h.Run != nil && h.Run.Trace == stream.TraceLevels[0] {
			return r.Errorf("the run was written with --trace minimal and has no outcomes; " +
				"--perfetto needs --trace decisions, or full for steps and KV blocks")
		}
	}
	return t.Trace.Record(r, o)
}

// commit completes the file.
func (t *timeline) commit() error {
	if t == nil {
		return nil
	}
	err := t.Close()
	if t.zip != nil {
		err = errors.Join(err, t.zip.Close())
	}
	if err != nil {
		return err
	}
	return t.file.Commit()
}

// discard removes a file that is not complete.
func (t *timeline) discard() {
	if t != nil {
		t.file.Close()
	}
}
