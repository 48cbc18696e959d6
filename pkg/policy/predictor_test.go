package policy

import "testing"

// TestVanishingLengths: a trend may leave nothing but a rounding error of a length, which is no length.
func TestVanishingLengths(t *testing.T) {
	p := &predictedLoad{}
	p.input.add(1e-12)
	p.output.add(5)
	if of, ok := p.shape(); ok {
		t.Errorf("the shape is %+v", of)
	}
	p.input.add(0.5)
	if of, ok := p.shape(); !ok || of != (shape{1, 1, 5}) {
		t.Errorf("the shape is %+v, known %v", of, ok)
	}
}
