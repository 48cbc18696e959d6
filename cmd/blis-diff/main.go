// Blis-diff will compare two runs, or a run and a recording of a real server,
// and say where they differ. It is not built yet: every call but --help and
// --version exits with 2.
//
//	blis-diff A B
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Diff.Main()) }
