// Package hardware holds the built-in catalogue: what data sheets say of GPUs,
// and coefficients that were measured. Package catalog reads it.
package hardware

import "embed"

// Files holds the catalogue's files.
//
//go:embed *.yaml
var Files embed.FS
