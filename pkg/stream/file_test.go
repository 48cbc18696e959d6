package stream

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// contents lists a folder as "name=text".
func contents(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	check(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		check(t, err)
		list = append(list, e.Name()+"="+string(data))
	}
	return list
}

func TestFileAppearsWhenCommitted(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "out.jsonl")
	for _, c := range []struct {
		text   string
		commit bool
		want   []string
	}{
		{"first", false, nil},
		{"second", true, []string{"out.jsonl=second"}},
		{"third", false, []string{"out.jsonl=second"}},
		{"fourth", true, []string{"out.jsonl=fourth"}},
	} {
		f, err := Create(path)
		check(t, err)
		_, err = f.WriteString(c.text)
		check(t, err)
		if list := contents(t, folder); slices.Contains(list, "out.jsonl="+c.text) {
			t.Errorf("%s is there before it is whole: %q", c.text, list)
		}
		if c.commit {
			check(t, f.Commit())
		}
		check(t, f.Abort())
		if got := contents(t, folder); !slices.Equal(got, c.want) {
			t.Errorf("after %s: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestFileKeepsPermissionsAndLinks(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	check(t, os.WriteFile(target, []byte("old"), 0o640))
	check(t, os.Chmod(target, 0o666))
	check(t, os.Symlink("target", link))
	f, err := Create(link)
	check(t, err)
	_, err = f.WriteString("new")
	check(t, err)
	check(t, f.Commit())
	info, err := os.Lstat(target)
	check(t, err)
	if info.Mode() != 0o666 {
		t.Errorf("mode %v", info.Mode())
	}
	if got, want := contents(t, folder), []string{"link=new", "target=new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

func TestFileThatIsNoFile(t *testing.T) {
	f, err := Create(os.DevNull)
	check(t, err)
	_, err = f.WriteString("x")
	check(t, err)
	check(t, f.Commit())
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s was replaced: %v", os.DevNull, err)
	}
	if _, err := Create(t.TempDir()); err == nil {
		t.Error("a folder was taken for a file")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("a file in no folder was created")
	}
}
