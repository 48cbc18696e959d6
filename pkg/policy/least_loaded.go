package policy

type leastLoaded struct{ load }

func newLeastLoaded(b *builder, s *Spec) Router { return &leastLoaded{newLoad(b, s)} }

func (l *leastLoaded) Route(v *View) Choice { return l.least(v) }
func (l *leastLoaded) Clone() Router        { return l }
