package attribution

import (
	"fmt"
	"slices"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// Conditions about time outside the replica's batches: the front end, control, flow control, clients, the horizon.

var inFlow = setOf(PartFlow)

var frontEnd = Condition{Name: "front_end", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, passed between routing and the" +
		" queue or between the engine and the client (latency.alpha_us)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("the front end took %s of %s ms to the first token (means)",
			p.mean(frontendMS), p.mean(ttftMS))
	},
	Hint:       "speed up the front end (latency.alpha_us): tokenizer, API server, detokenizer",
	change:     (*proposal).fasterFrontEnd,
	isAbsolute: true,
	took:       inPart(PartFrontend),
	holds:      when(func(r *request) bool { return r.takesHalf(r.split()[PartFrontend]) })}

var controlLatency = Condition{Name: "control_latency", Component: routingComponent, rank: rankCapacity,
	parts: anyPart,
	Doc: "at least half of the time to its first token, or of a lost request's time, were the latencies of" +
		" admission and routing",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("admission and routing took %s of %s ms to the first token (means)",
			p.mean(p.run.decisionMS), p.mean(ttftMS))
	},
	Hint:       "shorten control_plane.admission_latency_us or routing_latency_us",
	change:     (*proposal).fasterControl,
	isAbsolute: true,
	took:       func(a *Analyzer, r *request) taken { return taken{before: float64(a.decisionUS(r))} },
	holds: func(a *Analyzer, r *request) bool {
		return r.takesHalf(a.decisionUS(r))
	}}

// decisionUS is the time in which admission and routing decided.
func (a *Analyzer) decisionUS(r *request) int64 {
	s, c := r.split(), &a.topology.ControlPlane
	return min(c.AdmissionLatencyUS, s[PartAdmission]) + min(c.RoutingLatencyUS, s[PartFlow])
}

func (a *Analyzer) decisionMS(r *request) float64 { return float64(a.decisionUS(r)) / 1000 }

var flowControl = Condition{Name: "flow_control", Component: admissionComponent, rank: rankCapacity, parts: inFlow,
	Doc: "lost most in flow control",
	cause: func(p *Pattern) string {
		text := fmt.Sprintf("held or rejected by flow control%s, after %s ms"+
			" (mean)", p.run.flowLimits(), p.mean(flowMS))
		if sent := p.routed(); len(sent) > 0 {
			text += fmt.Sprintf("; their replicas then had %s requests", llmtext.Number(mean(sent, resident)))
			if !slices.ContainsFunc(sent, func(r *request) bool { return r.contention.queue < 0 }) {
				text += fmt.Sprintf(", %s of them waiting", llmtext.Number(mean(sent, ownQueue)))
			}
			text += " (means)"
		}
		return text
	},
	Hint: "raise the limits of control_plane.flow_control (detector, usage_limit; capacity and ttl_us: 0 is no limit)" +
		" where replicas have room; else add replicas",
	change: (*proposal).moreFlow,
	others: []remedy{{"have no capacity or ttl of flow control (0 is no limit)", (*proposal).noFlowLimits}, {"hold" +
		" the same share of requests of every priority back (static-usage-limit-policy)",
		(*proposal).noHoldback}},
	isAbsolute: true,
	holds: func(a *Analyzer, r *request) bool {
		held := r.evidence.held.prefillUS + r.evidence.held.decodeUS
		return !r.evidence.noneServed && 2*(a.decisionUS(r)+held) < r.split()[PartFlow] || a.rejectedByFlow(r)
	}}

var deadlineTooShort = Condition{Name: "deadline_too_short", Component: workloadComponent, rank: rankCapacity,
	parts: anyPart,
	Doc:   "aborted at the client's deadline; at least half of the time until then it was being served",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("aborted at the client's deadline after %s ms, of which waiting took %s; %s of %s output"+
			" tokens generated (means)",
			p.mean(lifetimeMS), p.mean(waitMS), p.mean(generatedTokens), p.mean(outputTokens))
	},
	Hint:  "give clients longer deadlines (deadline), or serve shorter outputs",
	holds: servedWhenEnded(stream.StateTimedOut)}

var horizonReached = Condition{Name: "horizon", Component: workloadComponent, rank: rankCapacity, parts: anyPart,
	Doc: "unfinished at the horizon; at least half of the time until then it was being served",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("cut off by the horizon after %s ms, of which waiting took %s; %s of %s output tokens"+
			" generated (means)", p.mean(lifetimeMS), p.mean(waitMS), p.mean(generatedTokens), p.mean(outputTokens))
	},
	Hint:  "simulate longer (--horizon), or select what arrived earlier (--to)",
	holds: servedWhenEnded(stream.StateUnfinished)}

// takesHalf reports whether a time is at least half of that to the first token, or to the end without one, and long.
func (r *request) takesHalf(us int64) bool {
	until := r.firstTokenOrEnd()
	return until != never && us >= longWaitUS && 2*us >= int64(until-r.arrival()) && r.verdict.missed != missedTPOT
}

// servedWhenEnded holds for requests that ended in a state and had waited less than half of their time.
func servedWhenEnded(state string) func(*Analyzer, *request) bool {
	return func(a *Analyzer, r *request) bool {
		return a.names.list[r.labels.state] == state && r.scheduled() != never && 2*waitMS(r) < lifetimeMS(r)
	}
}

// rejectedByFlow reports whether flow control rejected r: no admission policy did.
func (a *Analyzer) rejectedByFlow(r *request) bool {
	return a.topology.ControlPlane.FlowControl != nil && !r.admission.rejected &&
		a.names.list[r.labels.state] == stream.StateRejected && a.names.list[r.labels.reason] == stream.ReasonAdmission
}

// routed are the losing requests of the pattern that reached a replica.
func (p *Pattern) routed() (sent []*request) {
	for _, r := range p.losing {
		if r.contention.resident >= 0 {
			sent = append(sent, r)
		}
	}
	return sent
}

// Quantities of which causes name the mean.

func frontendMS(r *request) float64      { return float64(r.split()[PartFrontend]) / 1000 }
func flowMS(r *request) float64          { return float64(r.split()[PartFlow]) / 1000 }
func ttftMS(r *request) float64          { return latencyMS(r.arrival(), r.firstTokenOrEnd()) }
func lifetimeMS(r *request) float64      { return latencyMS(r.arrival(), r.ended()) }
func generatedTokens(r *request) float64 { return float64(r.tokens.generated) }

// waitMS is the time in which the request was not being served.
func waitMS(r *request) float64 {
	s := r.split()
	return float64(s[PartAdmission]+s[PartFlow]+s[PartEncode]+s[PartFrontend]+s[PartQueue]+s[PartPreempted]) / 1000
}
