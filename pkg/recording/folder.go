package recording

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// readFolder reads the output folder of a load generator: the file with its results, and what the other files state
// about the server. If several files have results, choice is the name of one, with or without its suffixes. Else
// choice selects runs, as in Read.
func readFolder(ctx context.Context, in textio.Input, choice, format string) (*Recording, error) {
	dir := in.Path
	results, others, err := dividedFiles(dir, format)
	if err != nil {
		return nil, err
	}
	switch {
	case len(results) == 0:
		return nil, folderErrorf(in.Name, "no file has results in a known format (%s)",
			strings.Join(Formats.Names(), ", "))
	case len(results) > 1:
		i := slices.IndexFunc(results, func(name string) bool { return name == choice || stem(name) == choice })
		if i < 0 {
			return nil, folderErrorf(in.Name, "%d files have results: choose one with #NAME (have %s)", len(results),
				strings.Join(abbreviate(results), ", "))
		}
		results, choice = results[i:i+1], ""
	}
	path := filepath.Join(dir, results[0])
	if choice != "" {
		path += "#" + choice
	}
	r, err := Read(ctx, textio.Input{Name: path, Path: path}, format)
	if err != nil {
		return nil, err
	}
	r.Folder = &Folder{Path: dir}
	if err := r.Folder.read(others, stem(results[0])); err != nil {
		return nil, err
	}
	for _, run := range r.Runs {
		r.Folder.apply(run)
	}
	return r, nil
}

// folderErrorf is an error about a folder.
func folderErrorf(dir, format string, args ...any) error {
	return &stream.SyntaxError{File: dir, Msg: fmt.Sprintf(format, args...)}
}

// stem is the name of a file up to its first dot.
func stem(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// dividedFiles are the names of the files with results, in order, and of the others. With a format, the results are
// those of that format.
func dividedFiles(dir, format string) (results, others []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0 || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		found, err := formatOf(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		if found != "" && (format == "" || found == format) {
			results = append(results, e.Name())
		} else {
			others = append(others, e.Name())
		}
	}
	return results, others, nil
}

// formatOf is the format of a file with results, "" if it is another file, such as a simulated run.
func formatOf(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := (textio.Input{Name: path, Path: path}).Open()
	if err != nil {
		return "", err
	}
	defer text.Close()
	first, err := text.Peek(headSize)
	if err != nil && err != io.EOF {
		return "", nil // not a text, or damaged: another file
	}
	h := readHead(first, nil)
	for _, e := range Formats {
		if !e.Value.detect(h) {
			continue
		}
		if !isBLIS(h) {
			return e.Name, nil
		}
		line, _, _ := strings.Cut(string(first), "\n")
		if strings.Contains(line, `"stream":"`+stream.StreamRecording+`"`) {
			return e.Name, nil
		}
		return "", nil
	}
	return "", nil
}
