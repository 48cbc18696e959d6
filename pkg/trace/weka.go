package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"blis/pkg/limits"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// weka reads recorded sessions of coding agents (github.com/callanjfox/kv-cache-tester, traces):
// one JSON object per session, in one or more files. The files of a folder are read in the order of
// their names. All sessions are at 0 because each has its own clock. One session is in memory at a
// time.
//
// Hash ids identify whole blocks of block_size tokens within their session (hash_id_scope local).
// Tokens after the last block are unique to the call, and sessions share no blocks as far as the
// trace says. The trace does not say which blocks contain earlier outputs, so outputs are not
// segments. The model is ignored: a cluster has its own.
type weka struct {
	textio.Position
	input string   // the given file or folder
	files []string // remaining files of a folder
	text  *textio.Text
	dec   *json.Decoder
	limit *limits.Reader
	// ids maps the sessions so far to their files.
	ids map[string]string
	// calls counts the calls, callsWithoutTime those without a service time and callsWithoutOutput
	// those without output. emptySessions counts the sessions without calls.
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

// wekaFiles returns the session files of a folder.
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
		return nil, &stream.SyntaxError{File: in.Name, Msg: "the folder contains no *.json file"}
	}
	return files, nil
}

func (w *weka) open(in Input) (err error) {
	if w.text, err = in.Open(); err != nil {
		return err
	}
	w.limit = limits.NewReader(w.text, "a session", limits.Document)
	w.Name, w.dec = in.Name, json.NewDecoder(w.limit)
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

// Warnings reports what was left out or assumed.
func (w *weka) Warnings() []string {
	warnings := slices.Clone(w.Position.Warnings())
	add := func(format string, args ...any) {
		warnings = append(warnings, w.input+": "+fmt.Sprintf(format, args...))
	}
	if w.callsWithoutOutput > 0 {
		add("left out %d aborted calls without output", w.callsWithoutOutput)
	}
	if w.emptySessions > 0 {
		add("left out %d sessions without calls", w.emptySessions)
	}
	if w.callsWithoutTime > 0 {
		add("%d of %d calls have no api_time and are treated as instantaneous; the think time after them includes them",
			w.callsWithoutTime, w.calls)
	}
	return warnings
}

// Close closes the current file.
func (w *weka) Close() error {
	if w.text != nil {
		w.text.Close()
	}
	w.text, w.dec = nil, nil
	return nil
}
