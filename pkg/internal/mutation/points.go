package mutation

import (
	"bytes"
	"fmt"
	"go/ast"
	constraint "go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Point is a small change that a typical mistake would make: text[From:To] of a file becomes New.
type Point struct {
	// File is the path; Name is relative to the parent of the package. Func is the function.
	File, Name, Func string
	From, To         int
	Old, New         string
	// Line is the number of the line, Text the line without blanks around it, and Column the place in the text.
	Line, Column int
	Text         string
}

// Key identifies the point as long as its line does not change.
func (p *Point) Key() string {
	return fmt.Sprintf("%s: %s: %s: %d: %s -> %s", p.Name, p.Func, p.Text, p.Column, p.Old, p.New)
}

// pointsOf returns the changes to the functions of the package in a folder: boundaries and operators, constants,
// conditions that are always or never true, and statements that are left out. Comparisons with nil, calls with texts
// and sizes of memory are not changed, and neither are files for other systems or whose first line says that they are
// generated.
func pointsOf(dir string) ([]Point, error) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	texts := map[*ast.File][]byte{}
	for _, name := range names {
		if match, err := constraint.Default.MatchFile(dir, filepath.Base(name)); err != nil {
			return nil, err
		} else if !match || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		texts[f] = text
	}
	info, err := check(dir, fset, files)
	if err != nil {
		return nil, err
	}
	var all []Point
	for _, f := range files {
		if ast.IsGenerated(f) {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name != "init" && fn.Name.Name != "_" {
				w := walker{fset: fset, info: info, text: texts[f], fn: fn.Name.Name}
				ast.Walk(&w, fn.Body)
				all = append(all, w.points...)
			}
		}
	}
	return all, nil
}

// check returns the types of the files of a package. The types of imports come from the compiler's cache.
func check(dir string, fset *token.FileSet, files []*ast.File) (*types.Info, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing what %s imports: %w", dir, err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	_, err = config.Check(dir, fset, files, info)
	return info, err
}

// walker collects the points of a function.
type walker struct {
	fset   *token.FileSet
	info   *types.Info
	text   []byte
	fn     string
	points []Point
}

// add adds the change of [from, to) to new.
func (w *walker) add(from, to token.Pos, new string) {
	at := w.fset.Position(from)
	start, stop := at.Offset, w.fset.Position(to).Offset
	lineStart := bytes.LastIndexByte(w.text[:start], '\n') + 1
	line, _, _ := bytes.Cut(w.text[lineStart:], []byte("\n"))
	text := strings.TrimSpace(string(line))
	w.points = append(w.points, Point{File: at.Filename, Func: w.fn, From: start, To: stop,
		Name: filepath.Base(filepath.Dir(at.Filename)) + "/" + filepath.Base(at.Filename),
		Old:  strings.Join(strings.Fields(string(w.text[start:stop])), " "), New: new,
		Line: at.Line, Column: start - lineStart - strings.Index(string(line), text) + 1, Text: text})
}

// source is the text of a node.
func (w *walker) source(n ast.Node) string {
	return string(w.text[w.fset.Position(n.Pos()).Offset:w.fset.Position(n.End()).Offset])
}

// swapped are the operators that replace others.
var swapped = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
	token.INC: "--", token.DEC: "++",
}

// Visit adds the points of a node.
func (w *walker) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			w.add(n.OpPos, n.OpPos+1, "")
		}
	case *ast.IncDecStmt:
		w.add(n.TokPos, n.TokPos+2, swapped[n.Tok])
	case *ast.AssignStmt:
		if new, ok := swapped[n.Tok]; ok && w.isNumber(n.Lhs[0]) {
			w.add(n.TokPos, n.TokPos+2, new)
		}
		if n.Tok == token.ASSIGN && !isBlank(n.Lhs) {
			w.add(n.Pos(), n.End(), "if false { "+w.source(n)+" }")
		}
	case *ast.IfStmt:
		if !w.isNilCheck(n.Cond) {
			w.add(n.Cond.Pos(), n.Cond.End(), "false && ("+w.source(n.Cond)+")")
			w.add(n.Cond.Pos(), n.Cond.End(), "true || ("+w.source(n.Cond)+")")
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !w.isMessage(call) {
			w.add(n.Pos(), n.End(), "if false { "+w.source(n)+" }")
		}
	case *ast.BasicLit:
		w.literal(n)
	case *ast.Ident:
		if o := w.info.Uses[n]; o == types.Universe.Lookup("true") {
			w.add(n.Pos(), n.End(), "false")
		} else if o != nil && o == types.Universe.Lookup("false") {
			w.add(n.Pos(), n.End(), "true")
		}
	case *ast.CallExpr:
		if w.isMessage(n) {
			return nil
		}
	case *ast.KeyValueExpr:
		ast.Walk(w, n.Value) // keys of tables are constants
		return nil
	case *ast.ArrayType, *ast.GenDecl, *ast.CaseClause:
		return w.inner(n)
	}
	return w
}

// inner walks the statements of a case, whose values are constants that may be there once, and of declarations.
func (w *walker) inner(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.CaseClause:
		for _, e := range n.List {
			if _, ok := e.(*ast.BinaryExpr); ok {
				ast.Walk(w, e)
			}
		}
		for _, s := range n.Body {
			ast.Walk(w, s)
		}
		return nil
	case *ast.GenDecl:
		if n.Tok == token.VAR {
			return w
		}
	}
	return nil
}

func (w *walker) binary(n *ast.BinaryExpr) {
	new, ok := swapped[n.Op]
	if !ok || w.info.Types[n].Value != nil || w.isNilCheck(n) {
		return
	}
	if isArithmetic := n.Op >= token.ADD && n.Op <= token.QUO; isArithmetic && !w.isNumber(n) {
		return
	}
	w.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), new)
}

func (w *walker) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		w.add(n.Pos(), n.End(), "("+n.Value+" + 1)")
	case token.FLOAT:
		w.add(n.Pos(), n.End(), "("+n.Value+" * 1.25)")
	}
}

// isNumber reports whether e may be a number. What is not does not compile with another operator.
func (w *walker) isNumber(e ast.Expr) bool {
	if _, ok := w.info.Types[e].Type.(*types.TypeParam); ok {
		return true
	}
	basic, ok := w.info.Types[e].Type.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// isNilCheck reports whether e compares with nil. Another result is nearly always a crash.
func (w *walker) isNilCheck(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && (w.info.Types[b.X].IsNil() || w.info.Types[b.Y].IsNil())
}

// isMessage reports whether a call makes memory, an error or a text.
func (w *walker) isMessage(call *ast.CallExpr) bool {
	for _, a := range call.Args {
		if text, ok := a.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
			return true
		}
	}
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "panic" || fun.Name == "make"
	case *ast.SelectorExpr:
		name := fun.Sel.Name
		return strings.HasSuffix(strings.ToLower(name), "errorf") || strings.HasSuffix(name, "rintf") ||
			name == "Inf" || name == "Grow" || name == "Close" || name == "Release"
	}
	return false
}

// isBlank reports whether an assignment has no effect but that its values are computed.
func isBlank(left []ast.Expr) bool {
	id, ok := left[0].(*ast.Ident)
	return ok && len(left) == 1 && id.Name == "_"
}
