// Package fixedseed makes property tests repeatable. A test that imports it draws the same
// cases in every run, so that the gate does not fail by chance. Other cases are drawn with
// go test -rapid.seed=0 (a random seed, printed on failure) and -rapid.checks=10000.
package fixedseed

import (
	"flag"

	_ "pgregory.net/rapid" // registers the flag
)

func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}
