package limits

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestPath: a file reaches what is in its folder and nothing else, also by symbolic links.
func TestPath(t *testing.T) {
	root := t.TempDir()
	dir, other := filepath.Join(root, "cluster"), filepath.Join(root, "secret")
	for _, folder := range []string{other, filepath.Join(dir, "model"), filepath.Join(dir, "leaky")} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "config.json"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range [][2]string{
		{filepath.Join(dir, "model"), filepath.Join(dir, "same")},
		{filepath.Join(dir, "model", "config.json"), filepath.Join(dir, "config.json")},
		{filepath.Join(other, "config.json"), filepath.Join(dir, "key.json")},
		{other, filepath.Join(dir, "outside")},
		{filepath.Join(other, "config.json"), filepath.Join(dir, "leaky", "hf_quant_config.json")},
		{"missing", filepath.Join(dir, "leaky", "a.json")},
		{"missing", filepath.Join(dir, "model", "a.json")},
		{dir, filepath.Join(root, "alias")},
	} {
		if err := os.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"model", true}, {"model/config.json", true}, {"./model", true}, {"model/../model", true}, {"same", true},
		{"config.json", true}, {"missing.json", true}, {"Qwen/Qwen3-8B", true},
		{filepath.Join(dir, "model"), true}, {"../cluster/model", true},
		{"../secret/config.json", false}, {"../missing", false}, {filepath.Join(root, "missing"), false},
		{"/etc/passwd", false}, {"model/../../secret", false},
		{"key.json", false}, {"outside", false}, {"outside/config.json", false}, {"leaky", false},
	} {
		for _, from := range []string{dir, filepath.Join(root, "alias")} {
			path, err := Path(from, c.name, false)
			if outside := new(outsideError); errors.As(err, &outside) == c.ok || err != nil && c.ok {
				t.Errorf("%s in %s: error %v, want one: %v", c.name, from, err, !c.ok)
			}
			if want := filepath.Join(from, c.name); path != want && path != c.name {
				t.Errorf("%s in %s: path %s, want %s", c.name, from, path, want)
			}
		}
	}
	for name, want := range map[string]string{"../secret": other, "/etc/passwd": "/etc/passwd",
		"model": filepath.Join(dir, "model")} {
		if path, err := Path(dir, name, true); path != want || err != nil {
			t.Errorf("%s, anywhere: path %s, %v, want %s", name, path, err, want)
		}
	}
}
