package sim

// hook is a point of a run at which observers are notified. Each is about a request, a replica or a
// session, which observers get by its slot or index.
type hook uint8

const (
	onArrival    hook = iota // request: it was offered
	onRouting                // request: the routing policy is about to choose from the view
	onDecision               // request: the control plane took decisions.last
	onSend                   // request: it was sent to its replica by decisions.last
	onEnqueue                // request: it entered the queue of its replica
	onCompiled               // request: its grammar is compiled
	onBatch                  // replica: it started a step, except some of those that only decode
	onStep                   // replica: it started a step; with an observer of it, no replica coasts
	onWait                   // replica: it has work, but all its requests wait for transfers or grammars
	onTokens                 // replica: the tokens of its last step, or of steps that it coasted, reached the clients
	onStepEnd                // replica: the requests that its last step completed have left
	onTransfer               // transfer: it has ended
	onEncode                 // encode replica: it began with a batch
	onEmbeddings             // transfer of embeddings: it has ended
	onSnapshot               // replica: the router read telemetry.read
	onScale                  // deployment: its auto-scaler looked, fleet.last
	onPlace                  // deployment: of its fleet, fleet.placed was chosen to get or lose a replica
	onPhase                  // replica: it has a new phase
	onMove                   // request: its replica goes, and it is about to go back to routing
	onFinal                  // request: it is final
	onSessionEnd             // session: it is final
	onClose                  // the run is over
	hookCount
)

// observer watches a run: metrics, traces, anomalies, regrets and checks are observers. It reads the
// simulation but never changes the course of the run.
type observer interface {
	// hooks are the hooks at which observe is called.
	hooks() []hook
	observe(s *simulation, h hook, i int32) error
}

// observers are the observers of each hook, in the order in which they are notified.
type observers [hookCount][]observer

// add plugs in an observer, behind the others.
func (l *observers) add(o observer) {
	for _, h := range o.hooks() {
		l[h] = append(l[h], o)
	}
}

// notify notifies the observers of a hook until one fails. It is small enough to be inlined, so that a
// hook without observers costs one test.
func (l *observers) notify(s *simulation, h hook, i int32) error {
	if len(l[h]) == 0 {
		return nil
	}
	return l.notifyAll(s, h, i)
}

func (l *observers) notifyAll(s *simulation, h hook, i int32) error {
	for _, o := range l[h] {
		if err := o.observe(s, h, i); err != nil {
			return err
		}
	}
	return nil
}
