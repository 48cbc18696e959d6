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
//	//wire:record NAME [encode] [decode] [results] [check]
//	//wire:object NAME [encode] [decode] [check]
//
// A record has a field kind, whose value is NAME. With check, its method check(*scanner) is called
// after decoding.
type object struct {
	typ, name, doc string
	record         bool
	flags          []string // encode, decode, results, check
	fields         []*field
}

func (o *object) has(flag string) bool { return slices.Contains(o.flags, flag) }

// field is one field of an object. Its tag json is that of encoding/json. Its tag wire is a list,
// separated by commas, of options:
//
//	min=X max=X  bounds of an integer, as Go expressions; by default 0 and the type's
//	oneof=X      the variable that lists the allowed strings
//	unique       strings that seldom repeat: not interned, no dictionary in Parquet
//	shortlived   strings in one piece of memory with many others, as those of Reader.Outcome
//	nodict       strings without dictionary in Parquet
//	result       read also by the decoder of results
//	fresh        decode into new memory instead of that of the previous record
type field struct {
	goName, typ, name, doc string
	required               bool // always written
	options                map[string]string
	kind
}

var fieldOptions = []string{"min", "max", "oneof", "unique", "nodict", "fresh", "shortlived", "result"}

func (f *field) has(option string) bool {
	_, found := f.options[option]
	return found
}

// parse reads the types with directives in the files that pattern matches, records first.
func parse(pattern string) ([]*object, error) {
	files := token.NewFileSet()
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var records, parts []*object
	for _, name := range names {
		if strings.HasSuffix(name, "_gen.go") {
			continue // it may be damaged, and is written again
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE || d.Doc == nil {
				continue
			}
			o, err := parseType(d)
			switch {
			case err != nil:
				return nil, fmt.Errorf("%s: %w", files.Position(d.Pos()), err)
			case o.record:
				records = append(records, o)
			case o.name != "":
				parts = append(parts, o)
			}
		}
	}
	return append(records, parts...), nil
}

// parseType returns an object without name for a type without directive.
func parseType(d *ast.GenDecl) (*object, error) {
	spec := d.Specs[0].(*ast.TypeSpec)
	o := &object{typ: spec.Name.Name}
	for _, c := range d.Doc.List {
		if words := strings.Fields(c.Text); words[0] == "//wire:record" || words[0] == "//wire:object" {
			o.record, o.name, o.flags = words[0] == "//wire:record", words[1], words[2:]
		}
	}
	if o.name == "" {
		return o, nil
	}
	o.doc = strings.TrimPrefix(firstParagraph(d.Doc), o.typ+" is ")
	o.doc = strings.ToUpper(o.doc[:1]) + o.doc[1:]
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		parsed, err := o.parseField(f)
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

func (o *object) parseField(f *ast.Field) (*field, error) {
	tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
	name, _, optional := strings.Cut(tag.Get("json"), ",")
	p := &field{goName: f.Names[0].Name, typ: types.ExprString(f.Type), name: name, doc: firstParagraph(f.Doc),
		required: !optional, options: map[string]string{}}
	p.kind = kindOf(p.typ)
	for option := range strings.SplitSeq(tag.Get("wire"), ",") {
		key, value, _ := strings.Cut(option, "=")
		if option != "" && !slices.Contains(fieldOptions, key) {
			return nil, fmt.Errorf("unknown option %q", option)
		}
		p.options[key] = value
	}
	p.options["max"] = cmp.Or(p.options["max"], p.kind.max)
	if name == "id" {
		p.decode += "\nif $v == \"\" {\ns.failf(\"id is empty\")\n}"
	}
	if name == "kind" {
		p.doc, p.options["oneof"] = "Always "+o.name+".", fmt.Sprintf("[]string{%q}", o.name)
		p.decode = "s.kind(f)"
	}
	if p.doc == "" {
		return nil, fmt.Errorf("no comment")
	}
	return p, nil
}
