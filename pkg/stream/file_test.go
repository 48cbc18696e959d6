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
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(t, err)
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
		must(t, err)
		_, err = f.WriteString(c.text)
		must(t, err)
		if list := contents(t, folder); slices.Contains(list, "out.jsonl="+c.text) {
			t.Errorf("%s appears before Commit: %q", c.text, list)
		}
		if c.commit {
			must(t, f.Commit())
		}
		must(t, f.Close())
		if got := contents(t, folder); !slices.Equal(got, c.want) {
			t.Errorf("after %s: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestNewFilesCanBeRead: a new file has the permissions that the umask leaves.
func TestNewFilesCanBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	f, err := Create(path)
	must(t, err)
	must(t, f.Commit())
	info, err := os.Stat(path)
	must(t, err)
	plain, err := os.Create(path + "-plain")
	must(t, err)
	defer plain.Close()
	want, err := plain.Stat()
	must(t, err)
	if info.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v", info.Mode(), want.Mode())
	}
}

func TestFileKeepsPermissionsAndLinks(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	must(t, os.WriteFile(target, []byte("old"), 0o640))
	must(t, os.Chmod(target, 0o666))
	must(t, os.Symlink("target", link))
	f, err := Create(link)
	must(t, err)
	_, err = f.WriteString("new")
	must(t, err)
	must(t, f.Commit())
	info, err := os.Lstat(target)
	must(t, err)
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

func TestDeviceIsWrittenDirectly(t *testing.T) {
	f, err := Create(os.DevNull)
	must(t, err)
	_, err = f.WriteString("x")
	must(t, err)
	must(t, f.Commit())
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s was replaced: %v", os.DevNull, err)
	}
	if _, err := Create(t.TempDir()); err == nil {
		t.Error("Create accepted a folder")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Error("Create accepted a missing folder")
	}
}
