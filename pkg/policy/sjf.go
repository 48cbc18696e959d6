package policy

type sjf struct{ needs }

func newSJF(*builder, *Spec) Scheduler { return sjf{needs(NeedPredicted)} }

func (sjf) Order(l *Local) float64 { return l.Request.Predicted }
func (s sjf) Clone() Scheduler     { return s }
