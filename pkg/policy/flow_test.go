package policy

import (
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// plainFlow is a direct implementation of fair first-come first-served: a queue for each tenant in
// order of first arrival, served in turn.
type plainFlow struct {
	tenants []int32
	lines   [][]int32
	turn    int
}

func (f *plainFlow) line(tenant int32) int {
	for i, t := range f.tenants {
		if t == tenant {
			return i
		}
	}
	f.tenants, f.lines = append(f.tenants, tenant), append(f.lines, nil)
	return len(f.lines) - 1
}

func (f *plainFlow) pop() int32 {
	for i := range f.lines {
		if k := (f.turn + i) % len(f.lines); len(f.lines[k]) > 0 {
			slot := f.lines[k][0]
			f.lines[k], f.turn = f.lines[k][1:], k+1
			return slot
		}
	}
	return -1
}

// openGate is never closed at a saturation of 0.
var openGate = &Gate{limit: staticLimit(1)}

// TestFlowTakesTenantsInTurn compares the two, also with many tenants of which few wait, and with
// removals from the middle.
func TestFlowTakesTenantsInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tenants := rapid.SampledFrom([]int32{1, 3, 70, 5000, 300000}).Draw(t, "tenants")
		f, want := NewFlow(FlowConfig{Order: "fifo", Fairness: "round-robin"}), &plainFlow{}
		slots := map[int32]int32{} // waiting requests and their tenants
		for slot := range int32(rapid.IntRange(1, 300).Draw(t, "n")) {
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 5:
				tenant := rapid.Int32Range(0, tenants-1).Draw(t, "tenant")
				f.Push(slot, &Request{TenantID: tenant}, 0)
				i := want.line(tenant)
				want.lines[i] = append(want.lines[i], slot)
				slots[slot] = tenant
			case op < 9 && f.Len() > 0:
				peeked, expected := f.Peek(), want.pop()
				first, ok := f.Pop(openGate, 0)
				if first != expected || peeked != expected || !ok {
					t.Fatalf("%d and %d are next, want %d", first, peeked, expected)
				}
				delete(slots, first)
			case f.Len() > 0:
				removed := rapid.SampledFrom(want.waiting()).Draw(t, "removed")
				f.Remove(removed, &Request{TenantID: slots[removed]})
				want.remove(removed)
				delete(slots, removed)
			}
			if f.Len() != len(slots) {
				t.Fatalf("%d wait, want %d", f.Len(), len(slots))
			}
		}
	})
}

func (f *plainFlow) waiting() (all []int32) {
	for _, l := range f.lines {
		all = append(all, l...)
	}
	return all
}

func (f *plainFlow) remove(slot int32) {
	for i, l := range f.lines {
		for k := range l {
			if l[k] == slot {
				f.lines[i] = append(append([]int32{}, l[:k]...), l[k+1:]...)
				return
			}
		}
	}
}

// BenchmarkFlow pushes and pops one request while all tenants wait.
func BenchmarkFlow(b *testing.B) {
	for _, tenants := range []int32{10, 10000} {
		b.Run(map[int32]string{10: "10", 10000: "10000"}[tenants], func(b *testing.B) {
			f := NewFlow(FlowConfig{Order: "fifo", Fairness: "round-robin"})
			for i := range tenants {
				f.Push(i, &Request{TenantID: i}, 0)
			}
			r, next := &Request{}, int32(0)
			for b.Loop() {
				r.TenantID = next % tenants
				next++
				f.Push(next, r, 0)
				f.Peek()
				f.Pop(openGate, 0)
			}
		})
	}
}
