package policy

type sjf struct{ reads }

func newSJF(*builder, *Spec) Scheduler { return sjf{reads(NeedPredicted)} }

func (sjf) Order(l *Local) float64 { return l.Request.Predicted }
func (s sjf) Clone() Scheduler     { return s }
