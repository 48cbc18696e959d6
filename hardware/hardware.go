// Package hardware embeds the built-in catalog: GPU data sheets and measured latency
// coefficients. Package blis/pkg/hardware reads it.
package hardware

import "embed"

// Files has the files of the catalog.
//
//go:embed *.yaml
var Files embed.FS
