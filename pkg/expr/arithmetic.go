package expr

import (
	"slices"
	"strconv"
	"strings"
)

// arithmetic parses the expressions that most scores and conditions are: arithmetic on unsigned numbers, names
// without indexes and functions of numbers, and one comparison of two such values. The tree is that of CEL, without
// the time that it takes to make an environment. It is nil for all other texts, among them all that have errors.
func arithmetic(src string, check func(name string) error, functions []Function, want []Type) *Node {
	p := &arithmeticParser{src: src, functions: functions, line: 1}
	if len(src) > maxArithmetic {
		return nil
	}
	n := p.comparison()
	if n == nil || p.at < len(src) || !slices.Contains(want, n.Type) {
		return nil
	}
	for _, name := range p.names {
		if check(name) != nil {
			return nil
		}
	}
	return n
}

// maxArithmetic is the maximum length of a text that arithmetic parses. It bounds the depth of the recursion.
const maxArithmetic = 1000

// reserved are the words that CEL does not allow as names, or that are values.
var reserved = strings.Fields("true false null in as break const continue else for function if import let loop" +
	" package namespace return var void while")

// arithmeticParser parses by recursive descent. Each method returns nil for what it does not know.
type arithmeticParser struct {
	src       string
	functions []Function
	names     []string // in the order of their occurrence
	// at is the offset of the next byte, line its line, and begin the offset of that line.
	at, line, begin int
}

// comparison is a sum, or two that are compared.
func (p *arithmeticParser) comparison() *Node {
	left := p.sum()
	for _, op := range []string{"<=", ">=", "==", "!=", "<", ">"} {
		if left != nil && strings.HasPrefix(p.src[p.at:], op) {
			p.at += len(op)
			if left = join(op, left, p.sum()); left != nil {
				left.Type = Flag
			}
			break
		}
	}
	return left
}

func (p *arithmeticParser) sum() *Node     { return p.operators("+-", p.product) }
func (p *arithmeticParser) product() *Node { return p.operators("*/", p.operand) }

// operators is a chain of operands with the operators, from left to right.
func (p *arithmeticParser) operators(ops string, operand func() *Node) *Node {
	n := operand()
	for n != nil && p.at < len(p.src) && strings.IndexByte(ops, p.src[p.at]) >= 0 {
		op := p.src[p.at : p.at+1]
		p.at++
		n = join(op, n, operand())
	}
	return n
}

// join is an operation on two numbers; it has the position of the first.
func join(op string, a, b *Node) *Node {
	if b == nil {
		return nil
	}
	return &Node{Op: op, Args: []*Node{a, b}, Type: Number, Line: a.Line, Col: a.Col}
}

// operand is a number, a name, a call or an expression in parentheses, with the white space around it.
func (p *arithmeticParser) operand() (n *Node) {
	p.space()
	here := &Node{Type: Number, Line: p.line, Col: p.at - p.begin + 1}
	switch word := p.word(); {
	case word == "" && p.skip('('):
		if n = p.sum(); !p.skip(')') {
			return nil
		}
	case word == "":
		return nil
	case '0' <= word[0] && word[0] <= '9':
		n = here.number(word)
	case p.skip('('):
		n = p.call(here, word)
	default:
		n = p.name(here, word)
	}
	p.space()
	return n
}

func (p *arithmeticParser) skip(c byte) bool {
	found := p.at < len(p.src) && p.src[p.at] == c
	if found {
		p.at++
	}
	return found
}

func (p *arithmeticParser) space() {
	for ; p.at < len(p.src) && strings.IndexByte(" \n", p.src[p.at]) >= 0; p.at++ {
		if p.src[p.at] == '\n' {
			p.line, p.begin = p.line+1, p.at+1
		}
	}
}

// word is the longest text of letters, digits, underscores and dots.
func (p *arithmeticParser) word() string {
	begin := p.at
	for p.at < len(p.src) && (isNameByte(p.src[p.at]) || p.src[p.at] == '.') {
		p.at++
	}
	return p.src[begin:p.at]
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'z'
}

// number makes n a literal: digits, and possibly a dot and more digits.
func (n *Node) number(word string) *Node {
	whole, fraction, hasDot := strings.Cut(word, ".")
	if hasDot && fraction == "" || len(word) > 15 || strings.Trim(whole+fraction, "0123456789") != "" {
		return nil
	}
	n.Value, _ = strconv.ParseFloat(word, 64) // it has at most 15 digits
	return n
}

func (p *arithmeticParser) name(n *Node, word string) *Node {
	for part := range strings.SplitSeq(word, ".") {
		if part == "" || part[0] <= '9' || slices.Contains(reserved, part) {
			return nil
		}
	}
	n.Name = word
	p.names = append(p.names, word)
	return n
}

// call is a call of a function of numbers, after its opening parenthesis.
func (p *arithmeticParser) call(n *Node, name string) *Node {
	i := slices.IndexFunc(p.functions, func(f Function) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	for {
		arg := p.sum()
		if arg == nil {
			return nil
		}
		if n.Args = append(n.Args, arg); !p.skip(',') {
			break
		}
	}
	f := &p.functions[i]
	repeats := len(n.Args) / len(f.Params)
	if !p.skip(')') || len(n.Args)%len(f.Params) != 0 || repeats != 1 && !f.Variadic || repeats > maxRepeats ||
		f.Returns != Number || slices.ContainsFunc(f.Params, func(t Type) bool { return t != Number }) {
		return nil
	}
	n.Op = name
	return n
}
