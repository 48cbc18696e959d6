package dist

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/registry"
)

// limits bound what is drawn, and the parameters that say what is drawn.
type limits struct{ min, max float64 }

var (
	tokens = limits{1, 1<<31 - 1} // as the wire has lengths
	micros = limits{0, maxMicros}
	counts = limits{0, 1<<31 - 1}
)

// params takes parameters by name and keeps the first fault.
type params struct {
	given map[string]float64
	limits
	// prefix is the path before the parameters' names.
	prefix     string
	registered []string
	err        error
	// absent: err is that of a parameter that is not given, perhaps misspelt.
	missing bool
}

// get takes the parameter called name, which must be given and lie between
// least and what is drawn at most.
func (p *params) get(name string, least float64) float64 { return p.between(name, least, p.max) }

// between takes the parameter called name, which must be given and lie between
// least and most.
func (p *params) between(name string, least, most float64) float64 {
	p.register(name)
	v, ok := p.given[name]
	if !ok {
		p.missing = p.missing || p.err == nil
		p.fail(name, "must be given")
	} else if !(v >= least && v <= most) {
		p.fail(name, "must be between %.16g and %.16g, is %g", least, most, v)
	}
	return v
}

// register notes that there is a parameter called name.
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

// integer takes the parameter called name, a whole number that can be drawn, or
// absent.
func (p *params) integer(name string, absent float64) float64 {
	if !p.has(name) {
		return absent
	}
	v := p.get(name, p.min)
	if v != math.Trunc(v) {
		p.fail(name, "must be a whole number, is %g", v)
	}
	return v
}

// checkUnknown reports the first parameter, by name, that nobody took, in the place
// of one that is not given.
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
