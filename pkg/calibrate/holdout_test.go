package calibrate

import (
	"slices"
	"testing"

	"blis/pkg/recording"
)

// TestStagesAreHeldBack: of ten requests, one a second, in stages to 5 s and 8 s, the second
// stage goes on to the last arrival, however it is asked for: five requests, the last 4 s
// after the first.
func TestStagesAreHeldBack(t *testing.T) {
	staged := func() *setup {
		r := shortRun(10)
		r.name = "r"
		r.stages = []recording.Stage{{Name: "low", ToUS: 5e6}, {Name: "high", FromUS: 5e6, ToUS: 8e6}}
		return &setup{runs: []*run{r, shortRun(10)}}
	}
	s := staged()
	parts, err := s.holdStage("high")
	if err != nil || len(parts) != 1 || !slices.Equal(parts[0].in, s.runs[0].within(5e6, 10e6)) || parts[0].name != "r stage high (1.25 requests/s)" {
		t.Fatalf("%+v, %v", parts, err)
	}
	for i, used := range s.runs[0].used {
		if used == parts[0].in[i] || !s.runs[1].used[i] {
			t.Errorf("request %d: used %v and %v", i, used, s.runs[1].used[i])
		}
	}
	if all := s.everything(); len(all) != 3 || !slices.Equal(all[1].in, parts[0].in) {
		t.Errorf("%+v", all)
	}
	s = staged()
	if ends := s.holdEnds(0.4); len(ends) != 3 || !slices.Equal(ends[1].in, s.runs[0].within(8e6, 10e6)) {
		t.Errorf("%+v", ends)
	}
	for _, name := range []string{"", "middle"} {
		if parts, err := staged().holdStage(name); err == nil || parts != nil {
			t.Errorf("stage %q: %+v", name, parts)
		}
	}
}
