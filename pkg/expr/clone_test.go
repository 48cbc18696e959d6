package expr

import "testing"

type pair struct{ a, b float64 }

var pairFields = []Field[pair]{
	{Name: "a", Type: Number, Number: func(p *pair) float64 { return p.a }},
	{Name: "b", Type: Number, Number: func(p *pair) float64 { return p.b },
		Available: func(p *pair) bool { return p.b >= 0 }},
	{Name: "name", Type: Text, Text: func(*pair) string { return "n" },
		Available: func(p *pair) bool { return p.b >= 0 }},
}

// TestUnavailableFieldIsAnError: a missing number or string is not 0 or "".
func TestUnavailableFieldIsAnError(t *testing.T) {
	n, err := Compile("a + b", pairFields, Number)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile("name", pairFields, Text)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := n.Number(&pair{1, 2}); x != 3 || err != nil {
		t.Errorf("1 + 2 is %v, %v", x, err)
	}
	if x, err := n.Number(&pair{1, -1}); err == nil {
		t.Errorf("1 + a missing field is %v", x)
	}
	if x, err := s.Text(&pair{1, -1}); err == nil {
		t.Errorf("a missing text is %q", x)
	}
}

// TestClonesDoNotShareState evaluates an interpreted expression and its clone.
func TestClonesDoNotShareState(t *testing.T) {
	e, err := Compile("[a, b].exists(x, x > 1) ? a : b", pairFields, Number)
	if err != nil {
		t.Fatal(err)
	}
	if e.Closure() {
		t.Fatal("is not interpreted")
	}
	c := e.Clone()
	first, second := &pair{5, 1}, &pair{7, 1}
	if x, err := e.Number(first); x != 5 || err != nil {
		t.Errorf("%v, %v", x, err)
	}
	if x, err := c.Number(second); x != 7 || err != nil {
		t.Errorf("the clone: %v, %v", x, err)
	}
	if e.at.value != first || c.at.value != second {
		t.Error("they share the value they are evaluated on")
	}
}
