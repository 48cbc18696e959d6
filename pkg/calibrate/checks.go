package calibrate

import "blis/pkg/registry"

// check is a diagnostic: it warns if the user has something to do about a fit or an evaluation.
type check func(r *report)

// checks are all diagnostics, in the order of their warnings: causes of large errors come before the errors.
var checks = registry.Table[check]{
	{Name: "settings", Doc: "unknown engine settings", Value: checkSettings},
	{Name: "capacity", Doc: "more concurrent load than the engine can hold", Value: checkCapacity},
	{Name: "slots", Doc: "requests wait for a batch slot, of which the engine has more", Value: checkSlots},
	{Name: "hidden-prefixes", Doc: "first tokens too early for prompts to be computed", Value: checkHiddenPrefixes},
	{Name: "step-kinds", Doc: "large errors on steps of one kind", Value: checkStepKinds},
	{Name: "misfit", Doc: "large errors on held-out data", Value: checkMisfit},
	{Name: "identifiability", Doc: "coefficients that the data do not identify", Value: checkIdentifiability},
	{Name: "warmup", Doc: "held-out data begin with a stall", Value: checkWarmup},
	{Name: "not-held-out", Doc: "an evaluation on data that were fitted to", Value: checkNotHeldOut},
}

// runChecks adds the warnings of all checks to those of the setup.
func (r *report) runChecks() {
	for _, c := range checks {
		c.Value(r)
	}
	r.Warnings = append([]string{}, r.setup.warnings...)
}
