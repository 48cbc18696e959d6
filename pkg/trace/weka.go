package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// weka reads recorded sessions of coding agents
// (github.com/callanjfox/kv-cache-tester, traces): one JSON object a session, in
// one file or in a folder of them, which are read in the order of their names;
// in one file several may follow each other. All sessions are at 0: each has
// only its own clock. One is held in memory at a time.
//
// The hash ids name blocks of block_size tokens in their session (hash_id_scope
// local), whole ones: what follows the last is the call's own, and so is, as
// far as the trace tells, the beginning of another session. Nothing says which
// blocks of a prompt an earlier answer became, so that answers are no segments.
// Which model was called is left aside: a cluster has its own.
type weka struct {
	textio.Position
	input string   // what was named: the file or the folder
	files []string // those to come, of a folder
	text  *textio.Text
	dec   *json.Decoder
	// ids are the sessions so far and the files that they stood in.
	ids map[string]string
	// calls counts the calls, unknown those whose service time is missing, empty
	// those without output; idle counts the sessions without calls.
	calls, callsWithoutTime, callsWithoutOutput, emptySessions int64
}

func openWeka(in Input, _ Options) (Reader, error) {
	w := &weka{Position: textio.Position{Name: in.Name}, input: in.Name, ids: map[string]string{}}
	if in.Path != "" {
		info, err := os.Stat(in.Path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if w.files, err = wekaFiles(in); err != nil {
				return nil, err
			}
			return w, nil
		}
	}
	if err := w.open(in); err != nil {
		return nil, err
	}
	return w, nil
}

var wekaFile = regexp.MustCompile(`\.jsonl?(\.gz|\.zst)?$`)

// wekaFiles are the sessions in a folder.
func wekaFiles(in Input) ([]string, error) {
	entries, err := os.ReadDir(in.Path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if wekaFile.MatchString(e.Name()) && !e.IsDir() {
			files = append(files, filepath.Join(in.Path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, &stream.SyntaxError{File: in.Name, Msg: "the folder holds no file *.json"}
	}
	return files, nil
}

func (w *weka) open(in Input) (err error) {
	if w.text, err = in.Open(); err != nil {
		return err
	}
	w.Name, w.dec = in.Name, json.NewDecoder(w.text)
	return nil
}

// Next reads the next session.
func (w *weka) Next(a *stream.Arrival) (float64, error) {
	for {
		if w.dec == nil {
			if len(w.files) == 0 {
				return 0, io.EOF
			}
			if err := w.open(Input{Name: w.files[0], Path: w.files[0]}); err != nil {
				return 0, err
			}
			w.files = w.files[1:]
		}
		session, err := w.read()
		if err == io.EOF {
			w.Close()
			continue
		}
		if err != nil {
			return 0, err
		}
		if session.record(a) {
			return 0, nil
		}
		w.emptySessions++
	}
}

// Warnings says what was taken how.
func (w *weka) Warnings() []string {
	warnings := slices.Clone(w.Position.Warnings())
	add := func(format string, args ...any) {
		warnings = append(warnings, w.input+": "+fmt.Sprintf(format, args...))
	}
	if w.callsWithoutOutput > 0 {
		add("left out %d calls without output, which were given up", w.callsWithoutOutput)
	}
	if w.emptySessions > 0 {
		add("left out %d sessions without calls", w.emptySessions)
	}
	if w.callsWithoutTime > 0 {
		add("%d of %d calls have no api_time; they are taken to have ended at once, so that the thinking after them includes them", w.callsWithoutTime, w.calls)
	}
	return warnings
}

// Close closes the file at hand.
func (w *weka) Close() error {
	if w.text != nil {
		w.text.Close()
	}
	w.text, w.dec = nil, nil
	return nil
}
