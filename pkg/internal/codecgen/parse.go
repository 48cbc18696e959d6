package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// object is a struct type with a directive
//
//	//wire:record NAME [encode] [decode]
//	//wire:object NAME [encode] [decode]
//
// A record has a field kind, whose value is NAME.
type object struct {
	typ, name, doc string
	record         bool
	encode, decode bool
	// check: the type has a method check(*scanner), called after decoding.
	check  bool
	fields []*field
}

// field is one field of an object. Its tag json is that of encoding/json. Its tag wire
// is a list, separated by commas, of
//
//	min=X max=X  bounds of an integer, as Go expressions; by default 0 and the type's
//	oneof=X      the variable that lists the allowed strings
//	unique       strings that seldom repeat: not interned, no dictionary in Parquet
//	nodict       strings without dictionary in Parquet
//	fresh        decode into new memory instead of that of the previous record
//	decoder=X    decode with method X(*scanner, *Field)
type field struct {
	goName, typ, name, doc string
	// required fields are always written; if not, omitzero distinguishes types whose
	// absence is not their zero value.
	required, omitzero    bool
	min, max, oneOf       string
	unique, nodict, fresh bool
	decoder               string
}

// parse reads the types with directives in the package in folder, in a fixed order.
func parse(folder string) ([]*object, error) {
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var declarations []ast.Decl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_gen.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		declarations = append(declarations, file.Decls...)
	}
	var objects []*object
	checks := map[string]bool{}
	for _, d := range declarations {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "check" && d.Recv != nil {
				checks[strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")] = true
			}
		case *ast.GenDecl:
			o, err := parseType(d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", files.Position(d.Pos()), err)
			}
			if o != nil {
				objects = append(objects, o)
			}
		}
	}
	for _, o := range objects {
		o.check = checks[o.typ]
	}
	slices.SortStableFunc(objects, func(a, b *object) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, nil
}

// rank puts records before the objects that are parts of them.
func rank(o *object) int {
	if o.record {
		return 0
	}
	return 1
}

// parseType returns nil for a declaration without directive.
func parseType(d *ast.GenDecl) (*object, error) {
	if d.Tok != token.TYPE || d.Doc == nil {
		return nil, nil
	}
	spec := d.Specs[0].(*ast.TypeSpec)
	o := &object{typ: spec.Name.Name}
	for _, c := range d.Doc.List {
		words := strings.Fields(c.Text)
		if words[0] != "//wire:record" && words[0] != "//wire:object" {
			continue
		}
		o.record = words[0] == "//wire:record"
		o.name = words[1]
		o.encode, o.decode = slices.Contains(words, "encode"), slices.Contains(words, "decode")
	}
	if o.name == "" {
		return nil, nil
	}
	o.doc = strings.TrimPrefix(firstParagraph(d.Doc), o.typ+" is ")
	o.doc = strings.ToUpper(o.doc[:1]) + o.doc[1:]
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		parsed, err := parseField(o, f)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", o.typ, f.Names[0].Name, err)
		}
		o.fields = append(o.fields, parsed)
	}
	return o, nil
}

// firstParagraph is the first paragraph of a comment on one line.
func firstParagraph(c *ast.CommentGroup) string {
	text, _, _ := strings.Cut(c.Text(), "\n\n")
	return strings.Join(strings.Fields(text), " ")
}

func parseField(o *object, f *ast.Field) (*field, error) {
	tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
	name, omit, optional := strings.Cut(tag.Get("json"), ",")
	p := &field{goName: f.Names[0].Name, typ: types.ExprString(f.Type), name: name,
		doc: firstParagraph(f.Doc), required: !optional, omitzero: omit == "omitzero"}
	switch p.typ {
	case "int64", "Micros":
		p.max = "maxExact"
	case "Index":
		p.max = "maxIndex"
	}
	if name == "kind" {
		p.doc, p.oneOf = "Always "+o.name+".", fmt.Sprintf("[]string{%q}", o.name)
	}
	if p.doc == "" {
		return nil, fmt.Errorf("no comment")
	}
	wire := tag.Get("wire")
	for _, option := range strings.FieldsFunc(wire, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "min":
			p.min = value
		case "max":
			p.max = value
		case "oneof":
			p.oneOf = value
		case "unique":
			p.unique = true
		case "nodict":
			p.nodict = true
		case "fresh":
			p.fresh = true
		case "decoder":
			p.decoder = value
		default:
			return nil, fmt.Errorf("unknown option %q", option)
		}
	}
	return p, nil
}
