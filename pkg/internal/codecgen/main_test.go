package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	const folder = "../../stream"
	for file := range outputs {
		want, err := generate(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s is not current: run go generate ./pkg/stream", file)
		}
	}
}
