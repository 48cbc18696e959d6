// Package operators holds tables of measured kernels, distilled by go test ./pkg/operators -update from those
// of aiconfigurator-core: see NOTICE.
package operators

import "embed"

// Files has a file SYSTEM.z for each system.
//
//go:embed *.z
var Files embed.FS
