package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/parquet"
)

// fenced returns the fenced blocks of a language in a document.
func fenced(doc, language string) (blocks []string) {
	for _, part := range strings.Split(doc, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// The recipes of docs/tables.md run with DuckDB, pandas and polars where those are installed for the Python of
// BLIS_PYTHON (default python3).
func TestTableRecipes(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs/tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	sql, python := fenced(string(doc), "sql"), fenced(string(doc), "python")
	if len(sql) != 3 || len(python) != 2 {
		t.Fatalf("%d recipes in SQL and %d in Python", len(sql), len(python))
	}
	folder := t.TempDir()
	for _, call := range []struct {
		tool Tool
		args []string
	}{
		{Gen, []string{"--requests", "500", "--seed", "7", "-o", filepath.Join(folder, "w.jsonl")}},
		{Sim, []string{"--trace", "full", filepath.Join(folder, "w.jsonl"), "-o", filepath.Join(folder, "run") + "/"}},
	} {
		code := call.tool.run(t.Context(), call.args, standardStreams{Out: io.Discard, Err: io.Discard})
		if code != exitOK {
			t.Fatalf("%s %q: exit code %d", call.tool.name, call.args, code)
		}
	}
	table, err := os.ReadFile(filepath.Join(folder, "run", outcomesFile))
	if err != nil {
		t.Fatal(err)
	}
	_, n, err := parquet.ReadColumns(bytes.NewReader(table), int64(len(table)), "id")
	if err != nil {
		t.Fatal(err)
	}
	requests := fmt.Sprint(n, " requests")
	duckdb := "import duckdb, sys\nfor r in duckdb.sql(sys.stdin.read()).fetchall(): print(*r)\n"
	for _, recipe := range []struct{ name, modules, program, input, want string }{
		{"DuckDB, classes", "duckdb", duckdb, sql[0], "interactive "},
		{"DuckDB, replicas", "duckdb", duckdb, sql[1], "main 0 "},
		{"DuckDB, metadata", "duckdb", duckdb, sql[2], "7"},
		{"pandas", "pandas, pyarrow", python[0], "", requests},
		{"polars", "polars", python[1], "", requests},
	} {
		t.Run(recipe.name, func(t *testing.T) {
			interpreter := cmp.Or(os.Getenv("BLIS_PYTHON"), "python3")
			if err := exec.Command(interpreter, "-c", "import "+recipe.modules).Run(); err != nil {
				t.Skipf("%s has no %s: the recipe is not run", interpreter, recipe.modules)
			}
			run := exec.Command(interpreter, "-c", recipe.program)
			run.Dir, run.Stdin = folder, strings.NewReader(recipe.input)
			out, err := run.CombinedOutput()
			if err != nil || !strings.Contains(string(out), recipe.want) {
				t.Errorf("%v, no %q in:\n%s", err, recipe.want, out)
			}
		})
	}
}
