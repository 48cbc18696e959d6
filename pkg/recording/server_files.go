package recording

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"blis/pkg/limits"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
	"blis/pkg/textio"
)

// serverFiles are the files that state something about a server. Their patterns are those of path.Match.
var serverFiles = registry.Table[serverFile]{
	{Name: "server.yaml", Doc: "written by hand: model, gpu, vllm_version and settings of the engine",
		Value: serverFile{read: (*Folder).readSettings, started: true}},
	{Name: "vllm*.yaml", Doc: "vLLM's --config", Value: serverFile{read: (*Folder).readSettings, started: true}},
	{Name: "exp-config.yaml", Doc: "inference-sim's experiments",
		Value: serverFile{read: (*Folder).readSettings, started: true}},
	{Name: "meta.json", Doc: "LLMServingSim's vLLM benchmark",
		Value: serverFile{read: (*Folder).readMeta, started: true}},
	{Name: "config.json", Doc: "LLMServingSim's cluster", Value: serverFile{read: (*Folder).readNodes}},
	{Name: "experiments.csv", Doc: "a row for each recording, which the column experiment names",
		Value: serverFile{read: (*Folder).readExperiments, started: true}},
	{Name: "version.json", Doc: "the answer of vLLM's /version", Value: serverFile{read: (*Folder).readVersion}},
	{Name: "metrics.txt", Doc: "the answer of vLLM's /metrics",
		Value: serverFile{read: (*Folder).readMetrics, long: true}},
	{Name: "server_metrics_export.json*", Doc: "AIPerf's copy of /metrics",
		Value: serverFile{read: (*Folder).readMetrics, long: true}},
	{Name: "gpu_telemetry_export.jsonl", Doc: "AIPerf's copy of DCGM's metrics",
		Value: serverFile{read: (*Folder).readGPUs, long: true}},
	{Name: "nvidia-smi.txt", Doc: "nvidia-smi -L", Value: serverFile{read: (*Folder).readGPUs, long: true}},
	{Name: "*.sh", Doc: "the launch command, with vllm serve", Value: serverFile{read: (*Folder).readCommand}},
	{Name: "launch*", Doc: "the launch command", Value: serverFile{read: (*Folder).readCommand}},
	{Name: "command*", Doc: "the launch command", Value: serverFile{read: (*Folder).readCommand}},
	{Name: "*.log", Doc: "vLLM's log", Value: serverFile{read: (*Folder).readLog, long: true}},
	{Name: "profile_export_aiperf.json", Doc: "AIPerf's summary",
		Value: serverFile{read: (*Folder).readAIPerfSummary, long: true}},
}

// serverFile is a kind of file.
type serverFile struct {
	// read states what a file with this name and text has; recording is the stem of the file of results.
	read func(d *Folder, name, recording string, text []byte) error
	// started: it says how the engine was started.
	started bool
	// long files are read up to maxLong bytes; settings are at their start.
	long bool
}

const maxLong = 16 << 20

// read reads the files with the given names of the folder of a recording.
func (d *Folder) read(names []string, recording string) error {
	d.stated = map[string]statement{}
	for _, kind := range serverFiles {
		for _, name := range names {
			if ok, _ := filepath.Match(kind.Name, name); !ok {
				continue
			}
			text, err := kind.Value.readStart(filepath.Join(d.Path, name))
			if err != nil {
				return err
			}
			before := len(d.stated)
			if err := kind.Value.read(d, name, recording, text); err != nil {
				return err
			}
			d.Started = d.Started || kind.Value.started && len(d.stated) > before
		}
	}
	return nil
}

// readStart reads the start of a long file, and other files whole.
func (f *serverFile) readStart(path string) ([]byte, error) {
	text, err := (textio.Input{Name: path, Path: path}).Open()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	if f.long {
		return io.ReadAll(io.LimitReader(text, maxLong))
	}
	return limits.ReadAll(text, path, limits.Config)
}

// readSettings reads names and values in YAML or JSON, also below engine, args or server.
func (d *Folder) readSettings(name, _ string, text []byte) error {
	doc, err := strictyaml.Parse(filepath.Join(d.Path, name), text)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := doc.Decode(&all); err != nil {
		return err
	}
	return d.stateAll(name, all)
}

// stateAll states scalar values, those of nested objects after the others.
func (d *Folder) stateAll(file string, all map[string]any) error {
	var nested []map[string]any
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch v := all[name].(type) {
		case map[string]any:
			nested = append(nested, v)
		case []any, nil:
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			if err := d.state(file, name, string(text)); err != nil {
				return err
			}
		}
	}
	for _, v := range nested {
		if err := d.stateAll(file, v); err != nil {
			return err
		}
	}
	return nil
}

// readMeta reads the meta.json of LLMServingSim's benchmark; a meta.json of another program states nothing.
func (d *Folder) readMeta(name, _ string, text []byte) error {
	var meta struct {
		Model   string         `json:"model"`
		Version string         `json:"vllm_version"`
		Engine  map[string]any `json:"engine_kwargs"`
		KVCache struct {
			Blocks any `json:"num_gpu_blocks"`
		} `json:"kv_cache"`
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		return (&textio.Position{Name: filepath.Join(d.Path, name)}).Errorf("%s", textio.JSONMessage(err))
	}
	if meta.Engine == nil {
		return nil
	}
	return d.stateAll(name, map[string]any{statedModel: meta.Model, statedVersion: meta.Version, "engine": meta.Engine,
		"num_gpu_blocks": meta.KVCache.Blocks})
}

// readVersion reads the answer of vLLM's /version.
func (d *Folder) readVersion(name, _ string, text []byte) error {
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return (&textio.Position{Name: filepath.Join(d.Path, name)}).Errorf("%s", textio.JSONMessage(err))
	}
	return d.state(name, statedVersion, answer.Version)
}

// readNodes reads the hardware of LLMServingSim's cluster; the config.json of another program states nothing.
func (d *Folder) readNodes(name, _ string, text []byte) error {
	var config struct {
		Nodes []struct {
			Instances []struct {
				Hardware string `json:"hardware"`
			} `json:"instances"`
		} `json:"nodes"`
	}
	if json.Unmarshal(text, &config) != nil {
		return nil
	}
	for _, n := range config.Nodes {
		for _, i := range n.Instances {
			if err := d.state(name, statedGPU, i.Hardware); err != nil {
				return err
			}
		}
	}
	return nil
}

// readExperiments reads the row of a recording.
func (d *Folder) readExperiments(name, recording string, text []byte) error {
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return folderErrorf(filepath.Join(d.Path, name), "%v", err)
	}
	if len(rows) == 0 {
		return nil
	}
	at := slices.Index(rows[0], "experiment")
	for _, row := range rows[1:] {
		if at < 0 || row[at] != recording {
			continue
		}
		for i, column := range rows[0] {
			column = cmp.Or(settingNames[column], column)
			value := row[i]
			if column == "engine" { // its version, with remarks
				column, value = statedVersion, firstMatch(vllmVersion, value)
			}
			if _, known := settingKinds[column]; known {
				if err := d.state(name, column, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var (
	vllmVersion = pattern(`(?i)vllm (?:api server version |[\w ]*engine \()?v?(\d+\.\d+(?:\.\d+)?)`)
	engineStart = pattern(`LLM engine \(v(\d+\.\d+(?:\.\d+)?)`)
	blockCount  = pattern(`num_gpu_blocks\\*"?[:=] ?\\*"?(\d+)`)
	blocksInLog = pattern(`# GPU blocks: (\d+)`)
	changedArgs = pattern(`non-default args: \{(.*)\}`)
	changedArg  = pattern(`'(\w+)': (?:'([^']*)'|([^,'{}\[\]]+))`)
	gpuName     = pattern(`(?m)^GPU \d+: (.+?) \(UUID|"gpu_model_name": ?"([^"]+)"`)
	serveStart  = pattern(`vllm\s+serve\s|vllm\.entrypoints\.openai\.api_server\s|` +
		`vllm/vllm-openai(?::v?([\d.]+))?\S*\s`)
)

// pattern compiles a regular expression when it is used first: most runs read no files of servers.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// firstMatch is the first group of the first match that is not empty, "" without.
func firstMatch(r func() *regexp.Regexp, text string) string {
	for i, group := range r().FindStringSubmatch(text) {
		if i > 0 && group != "" {
			return group
		}
	}
	return ""
}

// readAIPerfSummary reads the model, by the name under which it is served. Other files know it better.
func (d *Folder) readAIPerfSummary(name, _ string, text []byte) error {
	var summary struct {
		Config struct {
			Models struct {
				Items []struct {
					Name string `json:"name"`
				} `json:"items"`
			} `json:"models"`
		} `json:"input_config"`
	}
	err := json.Unmarshal(text, &summary)
	if items := summary.Config.Models.Items; err == nil && len(items) > 0 && d.get(statedModel) == "" {
		return d.state(name, statedModel, items[0].Name)
	}
	return nil
}

// readMetrics reads the number of KV blocks.
func (d *Folder) readMetrics(name, _ string, text []byte) error {
	return d.state(name, "num_gpu_blocks", firstMatch(blockCount, string(text)))
}

// readGPUs reads the name of the first GPU.
func (d *Folder) readGPUs(name, _ string, text []byte) error {
	return d.state(name, statedGPU, strings.TrimPrefix(firstMatch(gpuName, string(text)), "NVIDIA "))
}

// readLog reads the first lines of vLLM's log: its version, its arguments and the number of KV blocks.
func (d *Folder) readLog(name, _ string, text []byte) error {
	log := string(text)
	version := cmp.Or(firstMatch(engineStart, log), firstMatch(vllmVersion, log))
	if err := d.state(name, statedVersion, version); err != nil {
		return err
	}
	if err := d.state(name, "num_gpu_blocks", firstMatch(blocksInLog, log)); err != nil {
		return err
	}
	arguments := changedArgs().FindStringSubmatch(log)
	if arguments == nil {
		return nil
	}
	d.Started = true
	for _, a := range changedArg().FindAllStringSubmatch(arguments[1], -1) {
		if err := d.state(name, a[1], a[2]+strings.TrimSpace(a[3])); err != nil {
			return err
		}
	}
	return nil
}

// readCommand reads the arguments of vllm serve, of its module, or of its image.
func (d *Folder) readCommand(name, _ string, text []byte) error {
	command := strings.ReplaceAll(string(text), "\\\n", " ")
	at := serveStart().FindStringSubmatchIndex(command)
	if at == nil {
		return nil
	}
	d.Started = true
	if at[2] >= 0 {
		if err := d.state(name, statedVersion, command[at[2]:at[3]]); err != nil {
			return err
		}
	}
	start := command[at[0]:at[1]]
	positional := !strings.HasPrefix(start, "vllm.") && !strings.HasPrefix(start, "vllm/") // the model follows
	command, _, _ = strings.Cut(command[at[1]:], "\n")
	words, err := shellWords(command)
	if err != nil {
		return folderErrorf(filepath.Join(d.Path, name), "the launch command: %v", err)
	}
	for i := 0; i < len(words); i++ {
		flag, value, given := strings.Cut(words[i], "=")
		if !strings.HasPrefix(flag, "-") {
			if positional && i == 0 {
				if err := d.state(name, statedModel, flag); err != nil {
					return err
				}
			}
			continue
		}
		flag = strings.TrimLeft(flag, "-")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value, given = words[i], true
		}
		if !given {
			value = "true"
			if off, isOff := strings.CutPrefix(flag, "no-"); isOff {
				flag, value = off, "false"
			}
		}
		if err := d.state(name, flag, value); err != nil {
			return err
		}
	}
	return nil
}

// shellWords splits a command as a shell does, up to a redirection or the next command. Variables stay as they are, and
// are errors where they are values of settings.
func shellWords(command string) (words []string, err error) {
	var word strings.Builder
	quote, inWord := rune(0), false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			end()
		case c == '&' || c == '|' || c == ';' || c == '>' || c == '<' || c == '#' && !inWord:
			end()
			return words, nil
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	end()
	return words, nil
}
