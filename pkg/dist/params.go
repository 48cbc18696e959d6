package dist

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/registry"
)

// limits are the range of draws, and of the parameters that are values.
type limits struct{ min, max float64 }

var (
	tokens = limits{1, 1<<31 - 1} // the range of lengths in files
	micros = limits{0, maxMicros}
	counts = limits{0, 1<<31 - 1}
)

// params reads parameters by name and keeps the first error.
type params struct {
	given map[string]float64
	limits
	// prefix is the path prefix of parameter names.
	prefix     string
	registered []string
	err        error
	// missing: err is about a missing parameter, which may be misspelled.
	missing bool
}

// get returns the parameter called name, which must be given and lie between least and the maximum
// draw.
func (p *params) get(name string, lowest float64) float64 { return p.between(name, lowest, p.max) }

// between returns the parameter called name, which must be given and lie between least and most.
func (p *params) between(name string, lowest, highest float64) float64 {
	p.register(name)
	v, ok := p.given[name]
	if !ok {
		p.missing = p.missing || p.err == nil
		p.fail(name, "must be given")
	} else if !(v >= lowest && v <= highest) {
		p.fail(name, "must be between %.16g and %.16g, is %g", lowest, highest, v)
	}
	return v
}

// register records that there is a parameter called name.
func (p *params) register(name string) {
	if !slices.Contains(p.registered, name) {
		p.registered = append(p.registered, name)
	}
}

// has reports whether the parameter called name is given.
func (p *params) has(name string) bool {
	p.register(name)
	_, ok := p.given[name]
	return ok
}

// integer returns the parameter called name, an integer in the range of draws, or the default.
func (p *params) integer(name string, missing float64) float64 {
	if !p.has(name) {
		return missing
	}
	v := p.get(name, p.min)
	if v != math.Trunc(v) {
		p.fail(name, "must be an integer, is %g", v)
	}
	return v
}

// checkUnknown reports the first unknown parameter, by name. It replaces an error about a missing
// one.
func (p *params) checkUnknown(family string) {
	var unknown []string
	for name := range p.given {
		if !slices.Contains(p.registered, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		name := slices.Min(unknown)
		if p.missing {
			p.err = nil
		}
		p.fail(name, "%v", registry.Unknown("parameter of "+family, name, p.registered))
	}
}

func (p *params) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = &ParamError{p.prefix + name, fmt.Sprintf(format, args...)}
	}
}
