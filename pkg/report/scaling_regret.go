package report

import (
	"fmt"
	"math"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

const maxScalingRegrets = 4

// scalingRegret has what other times of changes of the number of replicas would have given.
var scalingRegret = section{name: "SCALING REGRET", write: func(w *writer) {
	if w.Findings == nil || len(w.Findings.ScalingRegrets) == 0 {
		return
	}
	all := w.Findings.ScalingRegrets
	for i := range all[:min(len(all), maxScalingRegrets)] {
		w.line("%s", scalingRegretText(&all[i]))
	}
	w.omitted(len(all)-maxScalingRegrets, "changes")
}}

// changeNames are the values of stream.ScalingAlternative.Change in words.
var changeNames = map[string]string{stream.ScalingEarlier: "one look earlier", stream.ScalingLater: "one look later",
	stream.ScalingNever: "not at this look"}

func scalingRegretText(g *attribution.ScalingRegret) string {
	text := fmt.Sprintf("%s at %.0f s, %d -> %d replicas (%s): ", name(g.Deployment), float64(g.AtUS)/1e6, g.Current,
		g.Desired, name(g.Decision))
	x := g.Best
	if x == nil {
		return text + "no other time is better beyond the run's own sensitivity"
	}
	met := "as many requests meet their targets"
	if net := x.All.SLOGained - x.All.SLOLost; net != 0 {
		met = fmt.Sprintf("%d more requests meet their targets", net)
	}
	return text + fmt.Sprintf("better %s: %s, E2E of all requests %s ms, GPU seconds %s", changeNames[x.Change], met,
		signed(-x.All.E2EMS), signed(-x.GPUS))
}

// signed is a number with its sign, + where it is rounded to 0.
func signed(x float64) string {
	text := number(math.Abs(x))
	if x < 0 && text != number(0) {
		return "-" + text
	}
	return "+" + text
}
