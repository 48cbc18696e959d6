package reference

import (
	"reflect"
	"testing"
)

// TestRandomHostsReachEverything runs random cases with memory of the hosts: each rule must apply in many of them.
func TestRandomHostsReachEverything(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(400) {
		c, requests := RandomHosts(seed)
		r := Run(c, requests)
		counts := reflect.ValueOf(r.Host)
		for i := range counts.NumField() {
			if counts.Field(i).Int() > 0 {
				seen[counts.Type().Field(i).Name]++
			}
		}
		for _, o := range r.Outcomes {
			if o.Loaded > 0 {
				seen["Loaded"]++
				break
			}
		}
	}
	t.Log(seen)
	for i := range reflect.TypeFor[HostCounts]().NumField() {
		if name := reflect.TypeFor[HostCounts]().Field(i).Name; seen[name] < 4 {
			t.Errorf("%s in %d cases", name, seen[name])
		}
	}
	if seen["Loaded"] < 100 {
		t.Errorf("loads in %d cases", seen["Loaded"])
	}
}
