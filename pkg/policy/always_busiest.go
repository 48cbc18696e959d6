package policy

type alwaysBusiest struct{ plain }

func newAlwaysBusiest(*builder, *Spec) Router { return alwaysBusiest{} }

func (alwaysBusiest) Route(v *View) Choice {
	most := 0
	for i := range v.Replicas {
		v.Account.score(i, float64(v.Replicas[i].Inflight))
		if v.Replicas[i].Inflight > v.Replicas[most].Inflight {
			most = i
		}
	}
	return Choice{Candidate: most, Score: float64(v.Replicas[most].Inflight), Why: "most load"}
}

func (a alwaysBusiest) Clone() Router { return a }
