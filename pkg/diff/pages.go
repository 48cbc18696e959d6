package diff

// pages is a list that grows without being copied.
type pages[T any] struct {
	full [][]T
	n    int32
}

const pageSize = 1 << 12

func (p *pages[T]) append(v T) {
	if p.n%pageSize == 0 {
		p.full = append(p.full, make([]T, pageSize))
	}
	*p.at(p.n) = v
	p.n++
}

// at returns the i-th, from 0.
func (p *pages[T]) at(i int32) *T { return &p.full[i/pageSize][i%pageSize] }

// none is the place of what is not there.
const none = -1
