package main

import (
	"os"
	"testing"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	for pkg := range outputs {
		name, want, err := generate("../../" + pkg)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s is not current: run go generate ./pkg/stream ./pkg/parquet", name)
		}
	}
}
