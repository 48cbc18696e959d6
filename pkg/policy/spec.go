package policy

import (
	"encoding/json"
	"fmt"
)

// Bundle is the set of policies of all stages, as files define it. A policy without a type is the
// stage's default.
type Bundle struct {
	Admission  Spec `yaml:"admission"  json:"admission"`
	Priority   Spec `yaml:"priority"   json:"priority"`
	Routing    Spec `yaml:"routing"    json:"routing"`
	Scheduler  Spec `yaml:"scheduler"  json:"scheduler"`
	Preemption Spec `yaml:"preemption" json:"preemption"`
	// PrefillRouting chooses the replica that computes a prompt, in disaggregated deployments; nil is a routing policy
	// like Routing with a state of its own.
	PrefillRouting *Spec `yaml:"prefill_routing" json:"prefill_routing,omitempty"`
	// Autoscale changes the number of replicas of deployments that have a max_replicas; nil changes none.
	Autoscale *Autoscale `yaml:"autoscale"  json:"autoscale,omitempty"`
	Lineage   `     yaml:",inline"`
}

// UnknownField says what a bundle has instead of a field.
func (b *Bundle) UnknownField(name string) string {
	if name == "policies" {
		return "a bundle has the stages (routing, admission, ...) at its top level"
	}
	return ""
}

// prefillRouting returns the policy that chooses the replica of a prompt.
func (b *Bundle) prefillRouting() *Spec {
	if b.PrefillRouting != nil {
		return b.PrefillRouting
	}
	return &b.Routing
}

// Lineage records where a bundle comes from, in the words of the tool that derived it. It has no
// effect.
type Lineage struct {
	Parent     string   `yaml:"parent"     json:"parent,omitempty"`
	Generation int64    `yaml:"generation" json:"generation,omitempty"`
	Mutations  []string `yaml:"mutations"  json:"mutations,omitempty"`
}

// Spec is one policy. Type is the name of a built-in policy with its Params, or one of
//
//   - expression: CEL texts. Admit (admission; true or false, or admit, reject,
//     delay), Priority and Hints (priority), Filter and Score (routing; the
//     highest score of the candidates that pass the filter), Order (scheduler;
//     lowest first), Victim (preemption; the highest is preempted), Desired
//     (autoscale; the number of replicas)
//   - starlark: Program, a Starlark program with functions that are called like
//     the texts of an expression: admit, priority and hint_NAME, filter and score,
//     order, victim, desired
//   - tree: Root, a decision tree; for priorities without policies that give hints,
//     such as deadline-aware
//   - chain (admission): Of, policies in turn; the first that does not admit
//     decides, and earlier ones keep what they took (a token of a bucket, a slot
//     in a window)
//   - filter (routing): Filter, and Use for the candidates that pass
//
// State declares variables of an expression, Starlark program, tree or filter, by name.
type Spec struct {
	Type     string            `yaml:"type"     json:"type"`
	Params   map[string]any    `yaml:"params"   json:"params,omitempty"`
	Admit    string            `yaml:"admit"    json:"admit,omitempty"`
	Priority string            `yaml:"priority" json:"priority,omitempty"`
	Hints    map[string]string `yaml:"hints"    json:"hints,omitempty"`
	Filter   string            `yaml:"filter"   json:"filter,omitempty"`
	Score    string            `yaml:"score"    json:"score,omitempty"`
	Order    string            `yaml:"order"    json:"order,omitempty"`
	Victim   string            `yaml:"victim"   json:"victim,omitempty"`
	Desired  string            `yaml:"desired"  json:"desired,omitempty"`
	Program  string            `yaml:"program"  json:"program,omitempty"`
	Root     *Node             `yaml:"root"     json:"root,omitempty"`
	Use      *Spec             `yaml:"use"      json:"use,omitempty"`
	Of       []Spec            `yaml:"of"       json:"of,omitempty"`

	State map[string]Variable `yaml:"state" json:"state,omitempty"`
}

// Variable is a number that a policy keeps from decision to decision. Its expressions read it as
// state.NAME. It is Init until the first decision. After each decision, Update is evaluated; all updates
// see the old values. In routing, replica.* in an update is the replica that the policy chose.
type Variable struct {
	Init   float64 `yaml:"init"   json:"init"`
	Update string  `yaml:"update" json:"update"`
}

// Node is a node of a decision tree: a condition with Then and Else; or another policy in Use; or,
// in Value, a verdict (admit, reject, delay, true, false) or a number.
type Node struct {
	If    string `yaml:"if"   json:"if,omitempty"`
	Then  *Node  `yaml:"then" json:"then,omitempty"`
	Else  *Node  `yaml:"else" json:"else,omitempty"`
	Use   *Spec  `yaml:"use"  json:"use,omitempty"`
	Value any    `yaml:"-"    json:"-"`
}

// inner returns the policies directly within s.
func (s *Spec) inner() (all []*Spec) {
	if s.Use != nil {
		all = append(all, s.Use)
	}
	return append(all, s.Root.leaves()...)
}

// leaves returns the policies at the leaves of a tree.
func (n *Node) leaves() (all []*Spec) {
	if n == nil {
		return nil
	}
	if n.Use != nil {
		all = append(all, n.Use)
	}
	return append(append(all, n.Then.leaves()...), n.Else.leaves()...)
}

// UnmarshalYAML decodes a node, which may be just a verdict or number.
func (n *Node) UnmarshalYAML(decode func(any) error) error {
	type plain Node
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	switch value.(type) {
	case map[string]any, []any, nil:
		return decode((*plain)(n))
	}
	*n = Node{Value: value}
	return nil
}

// MarshalJSON encodes a node as in files.
func (n *Node) MarshalJSON() ([]byte, error) {
	if n.Value != nil {
		return json.Marshal(n.Value)
	}
	type plain Node
	return json.Marshal((*plain)(n))
}

// Error is an invalid part of a bundle: the value at Path ("routing.score") or, if Line is not 0, a
// position in the text there.
type Error struct {
	Path      string
	Line, Col int
	Msg       string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Col, e.Msg)
	}
	return e.Path + ": " + e.Msg
}

// WithoutLineage returns the bundle without its lineage: the part that decides its behavior.
func (b Bundle) WithoutLineage() Bundle {
	b.Lineage = Lineage{}
	return b
}
