// Package schemas holds the JSON Schemas (draft 2020-12) of what the programs
// read and write, one file for each kind of record. They are made from the Go
// types and from the table of fields in package record; after a change there,
//
//	go test ./schemas -update
//
// rewrites them.
package schemas

import "embed"

// Files holds NAME.schema.json for each NAME.
//
//go:embed *.schema.json
var Files embed.FS
