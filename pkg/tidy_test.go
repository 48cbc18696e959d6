package pkg_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// bannedWords maps words of the project's former dialect, and British spellings, to the
// standard words. They are banned in prose and as parts of identifiers.
var bannedWords = map[string]string{
	"anew":        "again, recomputed",
	"beside":      "besides, alongside, concurrent with",
	"doubt":       "uncertainty, confidence interval",
	"doubts":      "uncertainty, confidence interval",
	"fate":        "outcome",
	"fates":       "outcomes",
	"foretell":    "predict",
	"foretelling": "predicting",
	"foretells":   "predicts",
	"foretold":    "predicted",
	"gust":        "burst",
	"gusts":       "bursts",
	"lookout":     "monitor",
	"lucky":       "best decile",
	"misspelt":    "misspelled",
	"nobody":      "no one, none, no replica",
	"nowhere":     "no replica, none",
	"seat":        "batch slot",
	"seats":       "batch slots, max_num_seqs",
	"somebody":    "a caller, another request",
	"someone":     "a caller, another request",
	"spoilt":      "corrupted",
	"stretch":     "segment, interval, fold",
	"stretches":   "segments, intervals, folds",
	"tell":        "report, identify, distinguish",
	"telling":     "reporting, identifying",
	"tells":       "reports, identifies, distinguishes",
	"told":        "reported, identified",
	"unsaid":      "not specified",
	"untold":      "not identifiable",
	"whence":      "from where, source",
	"whoever":     "the caller, the request that",
	"whom":        "that, which",
	"whomever":    "the caller, the request that",

	"artefact":     "artifact",
	"behaviour":    "behavior",
	"catalogue":    "catalog",
	"centre":       "center",
	"colour":       "color",
	"initialise":   "initialize",
	"labelled":     "labeled",
	"learnt":       "learned",
	"licence":      "license",
	"modelled":     "modeled",
	"modelling":    "modeling",
	"neighbour":    "neighbor",
	"neighbours":   "neighbors",
	"normalise":    "normalize",
	"normalised":   "normalized",
	"recognise":    "recognize",
	"recognised":   "recognized",
	"serialise":    "serialize",
	"summarise":    "summarize",
	"utilisation":  "utilization",
	"whilst":       "while",
	"cancelling":   "canceling",
	"optimise":     "optimize",
	"quantisation": "quantization",
}

// bannedPhrases are the same for phrases.
var bannedPhrases = []struct{ pattern, standard string }{
	{`became of|came of it`, "outcome of"},
	{`held (to|against) `, "checked against, compared with"},
	{`so many (of|tokens|requests|sequences|blocks|bytes|steps|µs|ms)`, "n, the given number of"},
	{`stands? there`, "is present"},
	{`the other way r?o?u?n?d`, "reversed"},
	{`in the place of`, "instead of"},
	{`tak(es|en|ing|e) the place of`, "replaces, overrides"},
	{`apart (by|of) `, "by, separately"},
	{`to be had`, "available"},
	{`whole numbers?`, "integer"},
	{`amounts? to `, "totals, is"},
	{`looked into`, "examined"},
	{`answers? (is|are|was|has|have) (long|short)`, "output"},
	{`calls? of (a model|models|tools)`, "model call, tool call"},
	{`is said to be|are said to be`, "is described as"},
	{`at hand`, "given, available, current"},
	{`in the mean\b`, "on average"},
	{`the (least|most) that`, "minimum, maximum"},
	{`which is why it is so`, "because"},
}

// tidyExceptions are the files that must name banned words.
var tidyExceptions = []string{"pkg/tidy_test.go", "LICENSE", "go.sum"}

// textFiles yields the text files of the repository.
func textFiles(t *testing.T, extensions ...string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		switch {
		case entry.IsDir():
			if entry.Name() == ".git" || entry.Name() == "fuzz" || entry.Name() == "bin" {
				return filepath.SkipDir
			}
			return nil
		case slices.Contains(tidyExceptions, name), !slices.Contains(extensions, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if bytes.IndexByte(text, 0) < 0 {
			found[name] = text
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 100 {
		t.Fatalf("found only %d files", len(found))
	}
	return found
}

// words splits a line into words: identifiers at underscores and at capitals.
func words(line string) []string {
	var all []string
	start := -1
	runes := []rune(line)
	flush := func(end int) {
		if start >= 0 {
			all = append(all, strings.ToLower(string(runes[start:end])))
			start = -1
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush(i)
		case start < 0:
			start = i
		case unicode.IsUpper(r) && !unicode.IsUpper(runes[i-1]):
			flush(i)
			start = i
		}
	}
	flush(len(runes))
	return all
}

func TestTidyWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(bannedPhrases))
	var all []string
	for i, p := range bannedPhrases {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + p.pattern + `)`)
		all = append(all, p.pattern)
	}
	anyPhrase := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)`)
	check := func(line string) (complaints []string) {
		for _, w := range words(line) {
			if standard, banned := bannedWords[w]; banned {
				complaints = append(complaints, fmt.Sprintf("%q is banned: write %s", w, standard))
			}
		}
		if !anyPhrase.MatchString(line) {
			return complaints
		}
		for i, p := range patterns {
			if found := p.FindString(line); found != "" {
				complaints = append(complaints, fmt.Sprintf("%q is banned: write %s", found, bannedPhrases[i].standard))
			}
		}
		return complaints
	}
	for _, line := range []string{"// Foretold by nobody.", "x := toldApart(y)", `"max_seats"`, "what became of it"} {
		if check(line) == nil {
			t.Errorf("%q passes", line)
		}
	}
	if c := check("the toll of retelling seatbelts"); c != nil {
		t.Errorf("innocent words: %v", c)
	}
	for name, text := range textFiles(t, ".go", ".md", ".yaml", ".txt", ".txtar", ".json", ".py", "") {
		for i, line := range strings.Split(string(text), "\n") {
			for _, c := range check(line) {
				t.Errorf("%s:%d: %s", name, i+1, c)
			}
		}
	}
}

// maxColumns is the longest line of Go, a tab being four columns.
const maxColumns = 120

// unbreakable matches what cannot be broken: a field with a tag, and an example in a
// manual page.
var unbreakable = regexp.MustCompile("^\t+\\w+ .*`\\w+:\"[^`]*`$|^//\t")

// quotingFiles quote other files line by line, so that their lines may be long.
var quotingFiles = []string{"pkg/sim/mutations_test.go"}

func TestTidyLineLength(t *testing.T) {
	for name, text := range textFiles(t, ".go") {
		if bytes.HasPrefix(text, []byte("// Code generated ")) || slices.Contains(quotingFiles, name) {
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := len([]rune(line)) + 3*strings.Count(line, "\t"); n > maxColumns && !unbreakable.MatchString(line) {
				t.Errorf("%s:%d: %d columns, want at most %d", name, i+1, n, maxColumns)
			}
		}
	}
}

// TestTidyProperties: the tests of a package with properties draw the same cases in every run.
func TestTidyProperties(t *testing.T) {
	drawing, fixed := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "." {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("rapid.Check(")) {
			drawing[filepath.Dir(path)] = true
		}
		if bytes.Contains(text, []byte("/internal/fixedseed\"")) {
			fixed[filepath.Dir(path)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(drawing) < 10 {
		t.Fatalf("found properties in %d packages", len(drawing))
	}
	for dir := range drawing {
		if !fixed[dir] {
			t.Errorf("%s: no test imports pkg/internal/fixedseed", dir)
		}
	}
}
