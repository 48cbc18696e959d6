package expr

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// checkAB allows the names a and m.ttft.p99.
func checkAB(name string) error {
	if name != "a" && name != "m.ttft.p99" {
		return errors.New("unknown")
	}
	return nil
}

// randomArithmetic draws an expression that arithmetic parses.
func randomArithmetic(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return []string{"a", "m.ttft.p99", "0", "12", "0.25", "100.0", "007.50", " a\n"}[r.IntN(8)]
	}
	x, y := randomArithmetic(r, depth-1), randomArithmetic(r, depth-1)
	switch r.IntN(4) {
	case 0:
		return "( " + x + ")"
	case 1:
		return []string{"ratio(" + x + ", " + y + ")", "wmean(" + x + "," + y + ",1, a )"}[r.IntN(2)]
	}
	return x + []string{" + ", "-", " * ", "/"}[r.IntN(4)] + y
}

// TestArithmeticIsCEL compares the trees of random expressions, whole and with a changed character, with those of
// CEL. Whole ones do not need CEL.
func TestArithmeticIsCEL(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := []Type{Number, Flag}
	const characters = "aimn_x.09e(), \n\t<>=!+-*/%\"[]?:u&|é"
	parsed := 0
	for i := range 6000 {
		src := randomArithmetic(r, 4)
		if r.IntN(3) == 0 {
			src += []string{" < ", "<=", ">", " >= ", "==", " != "}[r.IntN(6)] + randomArithmetic(r, 3)
		}
		whole := i%2 == 0 && len(src) <= maxArithmetic
		if i%2 == 1 {
			at, c := r.IntN(len(src)+1), characters[r.IntN(len(characters)):]
			src = src[:at] + c[:r.IntN(min(len(c), 3))] + src[min(len(src), at+r.IntN(2)):]
		}
		n := arithmetic(src, checkAB, treeFunctions, want)
		if n == nil {
			if whole {
				t.Fatalf("%q is not parsed", src)
			}
			continue
		}
		parsed++
		if wanted, err := celTree(src, checkAB, treeFunctions, want); err != nil || !reflect.DeepEqual(n, wanted) {
			t.Fatalf("%q is %v, want %v, %v", src, n, wanted, err)
		}
	}
	if parsed < 3100 {
		t.Errorf("%d expressions were compared", parsed)
	}
}

// TestArithmeticLeavesOthersToCEL: what has errors, and what it does not know.
func TestArithmeticLeavesOthersToCEL(t *testing.T) {
	for _, src := range []string{"", "b", "a +", "-a", "1e3", "1.", ".5", "1u", "a < 1 < 2", "true", "a.in", "a && a",
		"ratio(a)", "ratio (a, a)", "wmean(a, a, a)", "attained(a)", "x.ratio(a, a)", "a\t", "1234567890123456",
		"ratio(",
		`m.cls["b c"].rps`, "wmean(" + strings.Repeat("1,", 2*maxRepeats+1) + "1)", strings.Repeat("(", 600) + "a" +
			strings.Repeat(")", 600)} {
		if n := arithmetic(src, checkAB, treeFunctions, []Type{Number, Flag}); n != nil {
			t.Errorf("%q is %v", src, n)
		}
	}
	if n := arithmetic("a < 1", checkAB, treeFunctions, []Type{Number}); n != nil {
		t.Errorf("a flag is the number %v", n)
	}
}
