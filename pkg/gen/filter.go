package gen

import "blis/pkg/record"

// Filter says which requests to keep. The zero Filter keeps all.
type Filter struct {
	text string
	keep func(*record.Request) (bool, error)
}
