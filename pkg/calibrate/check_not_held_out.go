package calibrate

import (
	"slices"

	"blis/pkg/hardware"
)

// checkNotHeldOut finds recordings that the evaluated coefficients were fitted to.
func checkNotHeldOut(r *report) {
	for _, f := range r.setup.files {
		if r.fit.method == "" && slices.ContainsFunc(r.Set.Recordings, func(of hardware.Recording) bool {
			in := func(name string) bool { return slices.Contains(of.Runs, name) }
			return of.Digest == f.Digest && (len(of.Runs) == 0 || slices.ContainsFunc(f.Names(), in))
		}) {
			r.setup.warnf("%s: the coefficients were fitted to it, at least in part: its errors are not held out",
				f.Path)
		}
	}
}
