package diff

// pagedSlice is a list that grows without copying.
type pagedSlice[T any] struct {
	pages  [][]T
	length int32
}

const pageSize = 1 << 12

func (p *pagedSlice[T]) append(v T) {
	if p.length%pageSize == 0 {
		p.pages = append(p.pages, make([]T, pageSize))
	}
	*p.at(p.length) = v
	p.length++
}

// at returns the i-th element, from 0.
func (p *pagedSlice[T]) at(i int32) *T { return &p.pages[i/pageSize][i%pageSize] }

// noIndex is the index of a missing element.
const noIndex = -1
