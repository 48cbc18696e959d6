package summarize

import "blis/pkg/registry"

// Formats are the output formats.
var Formats = registry.Table[func(r *analysis, err error) ([]byte, error)]{
	{Name: "text", Doc: "metrics, score and explanation, for people and language models", Value: (*analysis).text},
	{Name: "table", Doc: "the main numbers, for people; several runs side by side", Value: (*analysis).table},
	{Name: "markdown", Doc: "the same in Markdown", Value: (*analysis).markdown},
	{Name: "csv", Doc: "every number: a row per number, a column per run", Value: (*analysis).csv},
	{Name: "json", Doc: "one document for programs", Value: (*analysis).json},
}

// render renders the summary; err is what ended reading or scoring.
func (r *analysis) render(err error) ([]byte, error) {
	format, unknown := Formats.Get("format", r.options.Format)
	if unknown != nil {
		return nil, unknown
	}
	return format(r, err)
}

// json renders the document with its texts.
func (r *analysis) json(err error) ([]byte, error) {
	d := r.document(err)
	d.Artifacts = r.artifacts(d)
	return d.encode()
}

// table renders the summary of one run or workload, or a table of several runs.
func (r *analysis) table(error) ([]byte, error) {
	if len(r.columns()) > 1 {
		return r.sideBySide(), nil
	}
	return r.document(nil).text(!r.defaultFitness && r.fitness != nil), nil
}
