package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// exportedExceptions are exported names without a use outside of their package.
var exportedExceptions = map[string]string{
	"pkg/policy.Choose":       "one of the kinds of parameters",
	"pkg/policy.Flag":         "one of the kinds of parameters",
	"pkg/policy.Critical":     "one of the tiers",
	"pkg/policy.NeedPriority": "one of the needs",
	"pkg/resample.Rejected":   "one of the final states",
	"pkg/resample.TimedOut":   "one of the final states",
	"pkg/resample.Failed":     "one of the final states",
	"pkg/resample.Unfinished": "one of the final states",
}

// source is a package as its files name things: parsed, not type-checked.
type source struct {
	exported map[string]token.Position
	// mentions are the exported names of the package itself that a declaration's API
	// names: a signature, an exported field, a type.
	mentions map[string][]string
}

// TestExportedNamesAreUsed checks that every exported function, type, variable and
// constant of pkg is used by another package, by name or in the API of a name that is.
func TestExportedNamesAreUsed(t *testing.T) {
	sources := map[string]*source{}
	used := map[string]map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" || strings.Contains(file, "testdata") {
			return err
		}
		parsed, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator))))
		recordUses(parsed, used)
		if strings.HasPrefix(dir, "pkg/") && !strings.HasSuffix(file, "_test.go") {
			if sources[dir] == nil {
				sources[dir] = &source{map[string]token.Position{}, map[string][]string{}}
			}
			sources[dir].declarations(fset, parsed)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 20 {
		t.Fatalf("found only %d packages", len(sources))
	}
	for dir, s := range sources {
		reached := map[string]bool{}
		var reach func(name string)
		reach = func(name string) {
			if !reached[name] {
				reached[name] = true
				for _, m := range s.mentions[name] {
					reach(m)
				}
			}
		}
		for name := range used[dir] {
			reach(name)
		}
		for name, at := range s.exported {
			if _, excepted := exportedExceptions[dir+"."+name]; !reached[name] && !excepted {
				t.Errorf("%s: %s is exported and no other package uses it: write it in lower case", at, name)
			}
		}
	}
	for name := range exportedExceptions {
		dir, short, _ := strings.Cut(name, ".")
		if s := sources[dir]; s == nil || s.exported[short].Line == 0 {
			t.Errorf("exportedExceptions: there is no %s", name)
		}
	}
}

// recordUses adds the names that a file selects from the packages it imports.
func recordUses(file *ast.File, used map[string]map[string]bool) {
	dirs := map[string]string{}
	for _, spec := range file.Imports {
		quoted, _ := strconv.Unquote(spec.Path.Value)
		dir, own := strings.CutPrefix(quoted, module+"/")
		if !own {
			continue
		}
		name := path.Base(dir)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		dirs[name] = dir
		if used[dir] == nil {
			used[dir] = map[string]bool{}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && dirs[x.Name] != "" {
				used[dirs[x.Name]][s.Sel.Name] = true
			}
		}
		return true
	})
}

// declarations adds the exported names that a file declares.
func (s *source) declarations(fset *token.FileSet, file *ast.File) {
	add := func(id *ast.Ident, api ...ast.Node) {
		if id.IsExported() {
			s.exported[id.Name] = fset.Position(id.Pos())
		}
		s.mention(id.Name, api...)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv == nil:
				add(d.Name, d.Type)
			case d.Name.IsExported():
				s.mention(receiver(d.Recv.List[0].Type), d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name, spec.Type)
				case *ast.ValueSpec:
					for i, id := range spec.Names {
						api := []ast.Node{spec.Type}
						if i < len(spec.Values) {
							api = append(api, spec.Values[i])
						}
						add(id, api...)
					}
				}
			}
		}
	}
}

// mention records the identifiers inside the nodes as part of the API of name.
func (s *source) mention(name string, nodes ...ast.Node) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				s.mentions[name] = append(s.mentions[name], id.Name)
			}
			return true
		})
	}
}

// receiver is the name of a receiver's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
