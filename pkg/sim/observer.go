package sim

import (
	"blis/pkg/engine"
	"blis/pkg/policy"
)

// hook is a point of a run at which observers are notified.
type hook uint8

const (
	onArrival    hook = iota // a request was offered
	onRouting                // the routing policy is about to choose from the view
	onDecision               // the control plane has decided
	onSend                   // a request was sent to its replica
	onEnqueue                // a request entered the queue of its replica
	onBatch                  // a replica started a step
	onTokens                 // a step ended and its tokens reached the clients
	onStepEnd                // the requests that a step completed have left the replica
	onSnapshot               // the router read fields of a replica; see telemetry.read
	onFinal                  // a request is final
	onSessionEnd             // a session is final
	onClose                  // the run is over
	hookCount
)

// observation is what observers are told at a hook; fields that do not apply to it are zero.
type observation struct {
	slot     int32 // of the request
	replica  int32
	view     *policy.View
	decision *decision
	step     *engine.StepResult
	session  *session
}

// observer watches a run: metrics, traces, anomalies, regrets and checks are observers. It reads the
// simulation but never changes the course of the run.
type observer interface {
	// hooks are the hooks at which observe is called.
	hooks() []hook
	observe(s *simulation, h hook, o observation) error
}

// observers are the observers of each hook, in the order in which they are notified.
type observers [hookCount][]observer

// add plugs in an observer, behind the others.
func (l *observers) add(o observer) {
	for _, h := range o.hooks() {
		l[h] = append(l[h], o)
	}
}

// notify notifies the observers of a hook.
func (s *simulation) notify(h hook, o observation) error {
	for _, x := range s.observers[h] {
		if err := x.observe(s, h, o); err != nil {
			return err
		}
	}
	return nil
}
