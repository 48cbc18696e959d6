package dist

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/registry"
)

// limits bound what is drawn, and the parameters that say what is drawn.
type limits struct{ least, most float64 }

var (
	tokens = limits{1, 1<<31 - 1} // as the wire has lengths
	micros = limits{0, maxMicros}
	counts = limits{0, 1<<31 - 1}
)

// params takes parameters by name and keeps the first fault.
type params struct {
	given map[string]float64
	limits
	// at is the path before the parameters' names.
	at    string
	known []string
	err   error
	// absent: err is that of a parameter that is not given, perhaps misspelt.
	absent bool
}

// get takes the parameter called name, which must be given and lie between
// least and what is drawn at most.
func (p *params) get(name string, least float64) float64 { return p.between(name, least, p.most) }

// between takes the parameter called name, which must be given and lie between
// least and most.
func (p *params) between(name string, least, most float64) float64 {
	p.know(name)
	v, ok := p.given[name]
	if !ok {
		p.absent = p.absent || p.err == nil
		p.fail(name, "must be given")
	} else if !(v >= least && v <= most) {
		p.fail(name, "must be between %.16g and %.16g, is %g", least, most, v)
	}
	return v
}

// know notes that there is a parameter called name.
func (p *params) know(name string) {
	if !slices.Contains(p.known, name) {
		p.known = append(p.known, name)
	}
}

// has reports whether the parameter called name is given.
func (p *params) has(name string) bool {
	p.know(name)
	_, ok := p.given[name]
	return ok
}

// whole takes the parameter called name, a whole number that can be drawn, or
// absent.
func (p *params) whole(name string, absent float64) float64 {
	if !p.has(name) {
		return absent
	}
	v := p.get(name, p.least)
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
		if !slices.Contains(p.known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		name := slices.Min(unknown)
		if p.absent {
			p.err = nil
		}
		p.fail(name, "%v", registry.Unknown("parameter of "+family, name, p.known))
	}
}

func (p *params) fail(name, format string, args ...any) {
	if p.err == nil {
		p.err = &ParamError{p.at + name, fmt.Sprintf(format, args...)}
	}
}
