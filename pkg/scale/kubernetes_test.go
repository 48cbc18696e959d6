package scale

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"testing"
)

// kubernetesCase is a fleet or, with Steps, a sequence of recommendations, with the answers of Kubernetes.
type kubernetesCase struct {
	Target, Tolerance     float64
	Values                []float64
	Loading, Provisioning int
	Want                  int

	Min, Max, Start int
	Up, Down        struct {
		StabilizationS int64
		Select         string
		Limits         []struct {
			Replicas int
			Percent  float64
			PeriodS  int64
		}
	}
	Steps []struct {
		AtS               int64
		Recommended, Want int
	}
}

// TestKubernetes compares with cases that scripts/hpa-oracle has written; HPA_CASES names others.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile(cmp.Or(os.Getenv("HPA_CASES"), "testdata/hpa.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var fleets, sequences int
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var c kubernetesCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Steps != nil {
			sequences++
			c.compareSequence(t)
			continue
		}
		fleets++
		f := Fleet{c.Values, c.Loading, c.Provisioning}
		if got := (Target{c.Target, c.Tolerance}).ForMean(&f); got != c.Want {
			t.Errorf("%s: %d replicas, Kubernetes has %d", s.Bytes(), got, c.Want)
		}
	}
	if fleets == 0 || sequences == 0 {
		t.Fatalf("%d fleets and %d sequences", fleets, sequences)
	}
	t.Logf("%d fleets and %d sequences are equal", fleets, sequences)
}

func (c *kubernetesCase) compareSequence(t *testing.T) {
	b := Behavior{Min: c.Min, Max: c.Max}
	for i, d := range []*Direction{&b.Up, &b.Down} {
		from := c.Up
		if i == 1 {
			from = c.Down
		}
		d.StabilizationUS = from.StabilizationS * 1e6
		d.Select = map[string]Select{"Max": selectMax, "Min": selectMin, "Disabled": selectDisabled}[from.Select]
		for _, l := range from.Limits {
			d.Limits = append(d.Limits, Limit{l.Replicas, l.Percent, l.PeriodS * 1e6})
		}
	}
	s, current := NewScaler(b), c.Start
	for i, step := range c.Steps {
		if current == 0 { // KEDA starts the first replica, see Next
			return
		}
		got := s.Next(step.AtS*1e6, current, step.Recommended)
		if got != step.Want {
			t.Errorf("step %d of %+v: %d replicas", i, *c, got)
			return
		}
		s.Changed(step.AtS*1e6, got-current)
		current = got
	}
}
