// Blis-calibrate will fit the coefficients of a latency model to measured
// traces of a real server. It is not built yet: every call but --help and
// --version exits with 2.
//
//	blis-calibrate RECORDING...
package main

import (
	"os"

	"blis/pkg/cli"
)

func main() { os.Exit(cli.Calibrate.Main()) }
