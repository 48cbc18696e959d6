package gen

import (
	"math"
	"testing"
)

// Deadlines and predictions have the distributions that they are said to have.
func TestDeadlinesAndPredictions(t *testing.T) {
	list := beside(t, "", "deadline: {type: exponential, params: {mean: 3000000}}, predicted_output: {error: 0.5, bias: 2}, ")
	n := float64(len(list))
	patience, ratio, square, long := 0.0, 0.0, 0.0, 0.0
	for _, r := range list {
		if r.DeadlineUS <= r.ArrivalUS || r.PredictedOutputTokens < 1 {
			t.Fatalf("%+v", r)
		}
		patience += float64(r.DeadlineUS-r.ArrivalUS) / n
		if r.OutputTokens > 50 { // where rounding matters little
			x := float64(r.PredictedOutputTokens) / float64(r.OutputTokens)
			ratio, square, long = ratio+x, square+x*x, long+1
		}
	}
	if math.Abs(patience/3e6-1) > 4/math.Sqrt(n) {
		t.Errorf("requests wait for %g µs in the mean", patience)
	}
	ratio /= long
	if cv := math.Sqrt(square/long-ratio*ratio) / ratio; math.Abs(ratio/2-1) > 0.03 || math.Abs(cv-0.5) > 0.03 {
		t.Errorf("predictions are %g times the answers, with cv %g; want 2 and 0.5", ratio, cv)
	}
	for _, r := range beside(t, "", "predicted_output: {error: 0}, ") {
		if r.PredictedOutputTokens != r.OutputTokens {
			t.Fatalf("an answer of %d is predicted as %d without error", r.OutputTokens, r.PredictedOutputTokens)
		}
	}
}

// Images and the like are added to each prompt, and change nothing else of it.
func TestMultimodal(t *testing.T) {
	plain := beside(t, "", "")
	list := beside(t, "", "multimodal: {image_tokens: {type: constant, params: {value: 256}}, images_per_request: {type: uniform, params: {min: 0, max: 4}}, audio_tokens: {type: constant, params: {value: 7}}}, ")
	counts := map[int64]float64{}
	for i, r := range list {
		added := r.InputTokens - plain[i].InputTokens
		if added%256 != 7 || added > 4*256+7 {
			t.Fatalf("%d tokens are added", added)
		}
		counts[added/256]++
		if r.ArrivalUS != plain[i].ArrivalUS || r.OutputTokens != plain[i].OutputTokens {
			t.Fatalf("%+v, without images %+v", r, plain[i])
		}
	}
	n := float64(len(list))
	for images := range int64(5) {
		if math.Abs(counts[images]/n-0.2) > 4*math.Sqrt(0.16/n) {
			t.Errorf("a share of %g has %d images, want 0.2", counts[images]/n, images)
		}
	}
}
