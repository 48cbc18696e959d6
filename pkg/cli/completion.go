package cli

import (
	"fmt"
	"slices"
	"strings"

	"blis/pkg/registry"

	"github.com/alecthomas/kong"
)

// shells are the shells that have a completion script, each with the function that writes it.
var shells = registry.Table[func(name string, flags []completedFlag) string]{
	{Name: "bash", Value: bashCompletion},
	{Name: "zsh", Value: zshCompletion},
	{Name: "fish", Value: fishCompletion},
}

// completionFlag prints the completion script of a shell.
type completionFlag string

// BeforeReset is called by kong when the flag is given.
func (completionFlag) BeforeReset(c *kong.Context, t Tool) error {
	var name string
	for _, part := range c.Path {
		if part.Flag != nil && part.Flag.Name == "completion" {
			name = fmt.Sprint(c.FlagValue(part.Flag))
		}
	}
	script, err := shells.Get("shell", name)
	if err != nil {
		return fmt.Errorf("--completion: %w", err)
	}
	if _, err := fmt.Fprint(c.Stdout, script(t.name, t.completedFlags(c.Model.Flags))); err != nil {
		return err
	}
	return errHelpShown
}

// valueKind is what the value of a flag is.
type valueKind int

const (
	valueNone  valueKind = iota // a switch
	valueOther                  // a number or an expression, which no shell can complete
	valueFile
	valueFolder
	valueChoice
)

// completedFlag is a flag as completion scripts see it.
type completedFlag struct {
	name, short, help, placeholder string
	repeatable                     bool
	kind                           valueKind
	choices                        []string
}

// filePlaceholders and folderPlaceholders are the placeholders of flags that take files.
var (
	filePlaceholders = []string{"FILE", "PATH", "RUN", "WORKLOAD", "COEFFICIENTS", "CEL|FILE", "FILE|EXPR", "DATA",
		"FORMAT:FILE"}
	folderPlaceholders = []string{"DIR"}
)

// completedFlags reads the parser's flags. A tag choices names a list of t.choices.
func (t Tool) completedFlags(flags []*kong.Flag) (all []completedFlag) {
	lists := map[string][]string{}
	if t.choices != nil {
		lists = t.choices()
	}
	for _, f := range flags {
		c := completedFlag{name: f.Name, help: f.Help, placeholder: strings.Trim(f.FormatPlaceHolder(), `"`),
			repeatable: f.IsCumulative()}
		if f.Short != 0 {
			c.short = string(f.Short)
		}
		if f.Enum != "" {
			c.choices = strings.Split(strings.Trim(f.Enum, ","), ",")
		}
		if f.Name == "completion" {
			c.choices = shells.Names()
		}
		if f.Tag.Has("choices") {
			c.choices = lists[f.Tag.Get("choices")]
		}
		switch {
		case f.IsBool():
		case len(c.choices) > 0:
			c.kind = valueChoice
		case slices.Contains(filePlaceholders, f.PlaceHolder):
			c.kind = valueFile
		case slices.Contains(folderPlaceholders, f.PlaceHolder):
			c.kind = valueFolder
		default:
			c.kind = valueOther
		}
		all = append(all, c)
	}
	return all
}

// bashCompletion works in bash 3.2 and later, without the package bash-completion.
func bashCompletion(name string, flags []completedFlag) string {
	var b strings.Builder
	function := "_" + strings.ReplaceAll(name, "-", "_")
	fmt.Fprintf(&b, "# bash completion of %s\n# shellcheck shell=bash disable=SC2207\n%s() {\n", name, function)
	b.WriteString("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n" +
		"\tif [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n" +
		"\tCOMPREPLY=()\n\tcase $prev in\n")
	var others, folders, names []string
	for _, f := range flags {
		pattern := "--" + f.name
		if f.short != "" {
			pattern = "-" + f.short + " | " + pattern
		}
		names = append(names, "--"+f.name)
		switch f.kind {
		case valueChoice:
			after := ""
			if strings.HasSuffix(f.choices[0], ":") { // a file follows
				after = "; compopt -o nospace 2>/dev/null"
			}
			fmt.Fprintf(&b, "\t%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\"))%s ;;\n", pattern,
				strings.Join(f.choices, " "), after)
			continue
		case valueFile:
			fmt.Fprintf(&b, "\t%s) ;;\n", pattern)
			continue
		case valueFolder:
			folders = append(folders, pattern)
		case valueOther:
			others = append(others, pattern)
		}
	}
	if folders != nil {
		fmt.Fprintf(&b, "\t%s) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n", strings.Join(folders, " | "))
	}
	if others != nil {
		fmt.Fprintf(&b, "\t%s) compopt +o default +o bashdefault 2>/dev/null ;;\n", strings.Join(others, " | "))
	}
	fmt.Fprintf(&b, "\t*) [[ $cur != -* ]] || COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n\tesac\n}\n",
		strings.Join(names, " "))
	fmt.Fprintf(&b, "complete -o bashdefault -o default -F %s %s\n", function, name)
	return b.String()
}

func zshCompletion(name string, flags []completedFlag) string {
	var b strings.Builder
	function := "_" + name
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion of %[1]s\n%s() {\n\t_arguments -s -S \\\n", name, function)
	escape := strings.NewReplacer(`'`, `'\''`, `[`, `\[`, `]`, `\]`, "`", "\\`", `$`, `\$`, `\`, `\\`)
	message := strings.NewReplacer(`:`, `\:`, `'`, ``)
	for _, f := range flags {
		text := "[" + escape.Replace(f.help) + "]"
		switch f.kind {
		case valueNone:
		case valueChoice:
			text += fmt.Sprintf(":%s:(%s)", message.Replace(f.placeholder),
				message.Replace(strings.Join(f.choices, " ")))
		case valueFile:
			text += fmt.Sprintf(":%s:_files", message.Replace(f.placeholder))
		case valueFolder:
			text += fmt.Sprintf(":%s:_files -/", message.Replace(f.placeholder))
		case valueOther:
			text += fmt.Sprintf(":%s: ", message.Replace(f.placeholder))
		}
		equals := "="
		if f.kind == valueNone {
			equals = ""
		}
		repeat := ""
		if f.repeatable {
			repeat = "*"
		}
		spec := fmt.Sprintf("'%s--%s%s%s'", repeat, f.name, equals, text)
		if f.short != "" {
			spec = fmt.Sprintf("'(-%s --%s)'{-%[1]s,--%[2]s%s}'%s'", f.short, f.name, equals, text)
		}
		fmt.Fprintf(&b, "\t\t%s \\\n", spec)
	}
	b.WriteString("\t\t'*:file:_files'\n}\n")
	fmt.Fprintf(&b, "if [[ ${funcstack[1]} == %s ]]; then %[1]s \"$@\"; else compdef %[1]s %s; fi\n", function, name)
	return b.String()
}

func fishCompletion(name string, flags []completedFlag) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fish completion of %s\n", name)
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for _, f := range flags {
		fmt.Fprintf(&b, "complete -c %s -l %s", name, f.name)
		if f.short != "" {
			fmt.Fprintf(&b, " -s %s", f.short)
		}
		switch f.kind {
		case valueNone:
		case valueChoice:
			fmt.Fprintf(&b, " -x -a '%s'", strings.Join(f.choices, " "))
		case valueFile:
			b.WriteString(" -r -F")
		case valueFolder:
			b.WriteString(" -x -a '(__fish_complete_directories)'")
		case valueOther:
			b.WriteString(" -x")
		}
		fmt.Fprintf(&b, " -d '%s'\n", quote.Replace(f.help))
	}
	return b.String()
}
