package cli

import (
	"fmt"
	"os"
	"testing"

	"blis/pkg/stream"

	"github.com/rogpeppe/go-internal/testscript"
)

// tools are all programs. The tests put them on PATH as processes of this test binary.
var tools = []Tool{Gen, Sim, Summarize, Diff, Calibrate}

func TestMain(m *testing.M) {
	commands := map[string]func(){"unzstd": unzstd}
	for _, tool := range tools {
		commands[tool.name] = func() { os.Exit(tool.Main("package main")) }
	}
	testscript.Main(m, commands)
}

// unzstd writes the lines of a complete stream.
func unzstd() {
	if err := writeLines(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "unzstd:", err)
		os.Exit(1)
	}
}

func writeLines(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := stream.NewReader(f)
	for r.Next() {
		if _, err := fmt.Printf("%s\n", r.Bytes()); err != nil {
			return err
		}
	}
	return r.Err()
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the tools as processes")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 root + "/testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("BLIS_PLAIN", "")
			for _, name := range []string{"BLIS_MUTATION", "BLIS_MUTANTS_REACHED"} { // of pkg/internal/mutation
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
	})
}
