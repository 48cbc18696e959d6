package summarize

import "blis/pkg/registry"

// Formats are what a summary can be written as.
var Formats = registry.Table[func(r *analysis, err error) ([]byte, error)]{
	{Name: "text", Doc: "what it amounts to and why, for people and language models", Value: (*analysis).text},
	{Name: "table", Doc: "all numbers that matter, for people; several runs side by side", Value: (*analysis).table},
	{Name: "markdown", Doc: "the same as a Markdown table", Value: (*analysis).markdown},
	{Name: "csv", Doc: "every number, a row each, a column for each run", Value: (*analysis).csv},
	{Name: "json", Doc: "one document for programs", Value: (*analysis).json},
}

// render is the report in the format that the call asks for; err is what ended it.
func (r *analysis) render(err error) ([]byte, error) {
	format, unknown := Formats.Get("format", r.options.Format)
	if unknown != nil {
		return nil, unknown
	}
	return format(r, err)
}

// json is the document with its texts.
func (r *analysis) json(err error) ([]byte, error) {
	d := r.document(err)
	d.Artifacts = r.artifacts(d)
	return d.encode()
}

// table is the summary of one run or workload, or a table of several runs.
func (r *analysis) table(error) ([]byte, error) {
	if len(r.columns()) > 1 {
		return r.sideBySide(), nil
	}
	return r.document(nil).text(!r.assumed && r.fitness != nil), nil
}
