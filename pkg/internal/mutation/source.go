package mutation

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// insertion is text to be put into a file.
type insertion struct {
	at   int
	text string
}

// mutatedFile is a source file with all mutations of its functions.
type mutatedFile struct {
	name       string // of its package
	text       []byte
	insertions []insertion
	named      map[token.Pos]bool // parameters without a name that have got one
}

// apply returns the file's text with the insertions.
func (f *mutatedFile) apply() []byte {
	slices.SortStableFunc(f.insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	last := 0
	for _, i := range f.insertions {
		out.Write(f.text[last:i.at])
		out.WriteString(i.text)
		last = i.at
	}
	out.Write(f.text[last:])
	return out.Bytes()
}

// replace adds a copy of the function that holds text[from:to], in which new is in place of that text. The copy's
// name ends with suffix. The function gets a first statement that calls the copy if condition is true.
// It returns false if no function holds the text, or its parameters or receiver have no names.
func (f *mutatedFile) replace(from, to int, new, suffix, condition string) (bool, error) {
	changed := slices.Concat(f.text[:from], []byte(new), f.text[to:])
	parsed, original, err := functionAt(f.text, from, to)
	if err != nil {
		return false, err
	}
	_, mutant, err := functionAt(changed, from, from+len(new))
	if err != nil || original == nil || mutant == nil {
		return false, err
	}
	f.name = parsed.Name.Name
	name := original.Name.Name + suffix
	call, ok := f.callOf(original, name)
	if !ok {
		return false, nil
	}
	f.insertions = append(f.insertions, insertion{int(original.Body.Lbrace),
		fmt.Sprintf("\nif %s {\n%s\n}\n", condition, call)})
	start, stop := mutant.Pos()-1, mutant.End()-1
	nameAt, nameEnd := mutant.Name.Pos()-1, mutant.Name.End()-1
	f.insertions = append(f.insertions, insertion{len(f.text),
		fmt.Sprintf("\n%s%s%s\n", changed[start:nameAt], name, changed[nameEnd:stop])})
	return true, nil
}

// functionAt returns the function that holds text[from:to], nil if there is none.
// Positions are offsets + 1, as in a file set with one file.
func functionAt(text []byte, from, to int) (*ast.File, *ast.FuncDecl, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Body != nil && int(fn.Body.Lbrace)-1 <= from && to < int(fn.End()) {
			return parsed, fn, nil
		}
	}
	return parsed, nil, nil
}

// callOf is the statement that calls the function's copy called name; ok is false if a
// parameter or the receiver has no name. A parameter called _ gets another one.
func (f *mutatedFile) callOf(fn *ast.FuncDecl, name string) (statement string, ok bool) {
	var arguments []string
	for _, p := range fn.Type.Params.List {
		if len(p.Names) == 0 {
			return "", false
		}
		for _, n := range p.Names {
			argument := n.Name
			if argument == "_" {
				prefix := fmt.Sprintf("ignored%d", len(arguments))
				argument = prefix + "_"
				if !f.named[n.Pos()] {
					f.named[n.Pos()] = true
					f.insertions = append(f.insertions, insertion{int(n.Pos()) - 1, prefix})
				}
			}
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	if fn.Recv != nil {
		if len(fn.Recv.List[0].Names) == 0 {
			return "", false
		}
		name = fn.Recv.List[0].Names[0].Name + "." + name
	}
	if fn.Type.TypeParams != nil {
		var types []string
		for _, p := range fn.Type.TypeParams.List {
			for _, n := range p.Names {
				types = append(types, n.Name)
			}
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	call := name + "(" + strings.Join(arguments, ", ") + ")"
	if fn.Type.Results != nil {
		return "return " + call, true
	}
	return call + "\nreturn", true
}
