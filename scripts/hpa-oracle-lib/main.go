// Command hpa-oracle writes random cases with the answers of Kubernetes' Horizontal Pod Autoscaler as JSON lines.
package main

import (
	"encoding/json"
	"log"
	"math/rand/v2"
	"os"
	"strconv"

	"hpa-oracle/podautoscaler"
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	seed, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	r, out := rand.New(rand.NewPCG(seed, 0)), json.NewEncoder(os.Stdout)
	for range n {
		if err := out.Encode(replicas(r)); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(sequence(r)); err != nil {
			log.Fatal(err)
		}
	}
}

// unit is large, since the calculator rounds the mean of the values down to an integer.
const unit = 1_000_000

// replicas is a fleet with the recommendation for it.
func replicas(r *rand.Rand) podautoscaler.ReplicaCase {
	c := podautoscaler.ReplicaCase{Target: 600 * unit, Tolerance: []float64{0, 0.1, 0.25}[r.IntN(3)]}
	level := r.Int64N(1200) * unit
	for range 1 + r.IntN(8) {
		switch x := level; r.IntN(4) {
		case 0: // at an edge of the tolerance
			x = int64(float64(c.Target) * (1 + c.Tolerance*float64(r.IntN(3)-1)))
			fallthrough
		default:
			c.Values = append(c.Values, x)
		case 1:
			c.Values = append(c.Values, r.Int64N(1200)*unit)
		}
	}
	if r.IntN(2) == 0 {
		c.Loading = r.IntN(4)
	}
	if r.IntN(2) == 0 {
		c.Provisioning = r.IntN(4)
	}
	podautoscaler.Solve(&c)
	return c
}

// sequence is a sequence of recommendations with the numbers of replicas that follow from it.
func sequence(r *rand.Rand) podautoscaler.BehaviorCase {
	c := podautoscaler.BehaviorCase{Min: r.Int32N(3), Start: 1 + r.Int32N(8)}
	c.Max = c.Min + 4 + r.Int32N(20)
	c.Start = min(max(c.Start, c.Min), c.Max)
	c.Up, c.Down = direction(r), direction(r)
	at := int32(0)
	for range 20 {
		c.Steps = append(c.Steps, podautoscaler.BehaviorStep{AtS: at, Recommended: r.Int32N(24)})
		at += 5 * (1 + r.Int32N(6))
	}
	podautoscaler.Play(&c)
	return c
}

// direction has a limit with the longest period in both directions: the controller may forget a change that is
// older than the longest period of its own direction, even if a period of the other direction holds it.
func direction(r *rand.Rand) podautoscaler.DirectionCase {
	d := podautoscaler.DirectionCase{StabilizationS: []int32{0, 0, 15, 60, 300}[r.IntN(5)],
		Select: []string{"Max", "Max", "Min", "Disabled"}[r.IntN(4)]}
	for range 1 + r.IntN(3) {
		l := podautoscaler.LimitCase{PeriodS: []int32{15, 30, 60}[r.IntN(3)]}
		if len(d.Limits) == 0 {
			l.PeriodS = 60
		}
		if r.IntN(2) == 0 {
			l.Replicas = 1 + r.Int32N(5)
		} else {
			l.Percent = []int32{10, 50, 100, 200}[r.IntN(4)]
		}
		d.Limits = append(d.Limits, l)
	}
	return d
}
