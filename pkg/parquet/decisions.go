package parquet

import (
	"math"

	"blis/pkg/stream"
)

// decisionRow is one row of a table of decisions.
type decisionRow struct {
	ID                   string         `parquet:"id"`
	Stage                string         `parquet:"stage,dict"`
	AtUS                 int64          `parquet:"at_us"`
	Request              string         `parquet:"request"`
	Verdict              *string        `parquet:"verdict,optional,dict"`
	DelayUS              *int64         `parquet:"delay_us,optional"`
	Deployment           *string        `parquet:"deployment,optional,dict"`
	Replica              *int32         `parquet:"replica"`
	Score                float64        `parquet:"score"`
	Candidates           int64          `parquet:"candidates"`
	Reason               *string        `parquet:"reason,optional,dict"`
	Rule                 *string        `parquet:"rule,optional,dict"`
	ExpectedCachedTokens *int64         `parquet:"expected_cached_tokens,optional"`
	Scorers              []string       `parquet:"scorers,optional,list"`
	Considered           []candidateRow `parquet:"considered,optional,list"`
}

// candidateRow is one candidate of a decision.
type candidateRow struct {
	Deployment   string    `parquet:"deployment,dict"`
	Replica      int32     `parquet:"replica"`
	Filtered     *bool     `parquet:"filtered,optional"`
	Score        *float64  `parquet:"score"`
	Terms        []float64 `parquet:"terms,optional,list"`
	Inflight     int32     `parquet:"inflight"`
	QueueDepth   *int32    `parquet:"queue_depth"`
	Running      *int32    `parquet:"running"`
	KVUtil       *float64  `parquet:"kv_util"`
	HitRate      *float64  `parquet:"hit_rate"`
	RecentTTFTMS *float64  `parquet:"recent_ttft_ms"`
	RecentTPOTMS *float64  `parquet:"recent_tpot_ms"`
	EstWaitMS    *float64  `parquet:"est_wait_ms"`
	Matched      *int32    `parquet:"matched_blocks"`
	Cached       *int32    `parquet:"cached_blocks"`
	AgeUS        *int64    `parquet:"age_us,optional"`
}

func rowOfDecision(d *stream.Decision) decisionRow {
	r := decisionRow{
		ID: d.ID, Stage: d.Stage, AtUS: int64(d.AtUS), Request: d.Request, Verdict: given(d.Verdict), DelayUS: given(d.DelayUS),
		Deployment: given(d.Deployment), Replica: place(d.Replica), Score: d.Score, Candidates: d.Candidates,
		Reason: given(d.Reason), Rule: given(d.Rule), ExpectedCachedTokens: given(d.ExpectedCachedTokens), Scorers: append([]string(nil), d.Scorers...),
	}
	for i := range d.Considered {
		c := &d.Considered[i]
		r.Considered = append(r.Considered, candidateRow{
			Deployment: c.Deployment, Replica: int32(c.Replica), Filtered: given(c.Filtered), Score: number(c.Score), Terms: append([]float64(nil), c.Terms...),
			Inflight: int32(c.Inflight), QueueDepth: place(c.QueueDepth), Running: place(c.Running), KVUtil: number(c.KVUtil),
			HitRate: number(c.HitRate), RecentTTFTMS: number(c.RecentTTFTMS), RecentTPOTMS: number(c.RecentTPOTMS), EstWaitMS: number(c.EstWaitMS),
			Matched: place(c.Matched), Cached: place(c.Cached), AgeUS: given(c.AgeUS),
		})
	}
	return r
}

func (r *decisionRow) record() stream.Decision {
	d := stream.Decision{
		Kind: stream.KindDecision, ID: r.ID, Stage: r.Stage, AtUS: stream.Micros(r.AtUS), Request: r.Request, Verdict: known(r.Verdict), DelayUS: known(r.DelayUS),
		Deployment: known(r.Deployment), Replica: index(r.Replica), Score: r.Score, Candidates: r.Candidates,
		Reason: known(r.Reason), Rule: known(r.Rule), ExpectedCachedTokens: known(r.ExpectedCachedTokens), Scorers: r.Scorers,
	}
	for i := range r.Considered {
		c := &r.Considered[i]
		d.Considered = append(d.Considered, stream.Candidate{
			Deployment: c.Deployment, Replica: stream.Index(c.Replica), Filtered: known(c.Filtered), Score: numberOf(c.Score), Terms: c.Terms,
			Inflight: stream.Index(c.Inflight), QueueDepth: index(c.QueueDepth), Running: index(c.Running), KVUtil: numberOf(c.KVUtil),
			HitRate: numberOf(c.HitRate), RecentTTFTMS: numberOf(c.RecentTTFTMS), RecentTPOTMS: numberOf(c.RecentTPOTMS), EstWaitMS: numberOf(c.EstWaitMS),
			Matched: index(c.Matched), Cached: index(c.Cached), AgeUS: known(c.AgeUS),
		})
	}
	return d
}

// number is null for what is none, and numberOf its inverse.
func number(n stream.Number) *float64 {
	if n.IsZero() {
		return nil
	}
	x := float64(n)
	return &x
}

func numberOf(x *float64) stream.Number {
	if x == nil {
		return stream.Number(math.NaN())
	}
	return stream.Number(*x)
}
