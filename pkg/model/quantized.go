package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// hfQuantization is a quantization_config. Depending on the method, the list of modules that are
// not quantized has one of four names.
type hfQuantization struct {
	Method       string                  `json:"quant_method"`
	Algo         string                  `json:"quant_algo"`
	Bits         *int                    `json:"bits"`
	Groups       map[string]hfQuantGroup `json:"config_groups"`
	NotConverted []string                `json:"modules_to_not_convert"`
	Ignored      []string                `json:"ignored_layers"`
	Ignore       []string                `json:"ignore"`
	Exclude      []string                `json:"exclude_modules"`
	// Mixed has the format of each module of algorithm MIXED_PRECISION.
	Mixed     map[string]hfMixed `json:"quantized_layers"`
	BlockSize []int              `json:"weight_block_size"`
}

type hfMixed struct {
	Algo string `json:"quant_algo"`
}

// quantizationOf reads the quantization from the file next to config.json, if there is one.
func (c *hfConfig) quantizationOf(name string, read func() ([]byte, error)) error {
	if read == nil {
		return nil
	}
	text, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file struct {
		Quantization *hfQuantization `json:"quantization"`
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return fmt.Errorf("%s: hf_quant_config.json: %w", name, err)
	}
	if c.Quantization = file.Quantization; c.Quantization != nil {
		c.Quantization.Method = "modelopt"
	}
	return nil
}

// precision returns the number formats.
func (c *hfConfig) precision(layers int) (p Precision, err error) {
	p = Precision{DType: deref(firstNonNil(c.DType, c.TorchDType), "bfloat16"), KVCache: "auto"}
	q := c.Quantization
	if q == nil {
		return p, p.check()
	}
	if strings.EqualFold(q.Algo, "MIXED_PRECISION") {
		err = q.mixed(&p)
	} else {
		p.Quantization, err = q.format()
	}
	if err != nil {
		return p, err
	}
	if c.ExpertDType == "fp4" && p.Experts == "" { // DeepSeek-V4 (vllm/model_executor/models/deepseek_v4.py)
		p.Experts = "mxfp4"
	}
	p.BlockScales = p.Quantization == "fp8" && len(q.BlockSize) > 0
	if err := p.check(); err != nil {
		return p, err
	}
	// Exclusions that every quantization has are not recorded.
	if p.Quantization != "" && !mustGet(quantizations, p.Quantization).expertsOnly && len(q.Mixed) == 0 {
		p.PlainAttention = q.skips(layers, isAttention)
		p.PlainMLP = q.skips(layers, isDenseMLP)
	}
	return p, nil
}

// mixed sets the formats of a mixed quantization: what most modules of each part have.
func (q *hfQuantization) mixed(p *Precision) error {
	attention, mlp, experts := map[string]int{}, map[string]int{}, map[string]int{}
	for module, m := range q.Mixed {
		format, ok := map[string]string{"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4",
			"MXFP8": "mxfp8"}[m.Algo]
		switch {
		case !ok:
			return fmt.Errorf("quantization_config.quantized_layers.%s.quant_algo: must be FP8, NVFP4, "+
				"W4A16_NVFP4 or MXFP8, is %q", module, m.Algo)
		case strings.Contains(module, "shared_expert"):
			mlp[format]++
		case strings.Contains(module, "expert"):
			experts[format]++
		case isAttention(module), strings.Contains(module, "mixer"):
			attention[format]++
		case strings.Contains(module, "mlp"):
			mlp[format]++
		}
	}
	p.Experts = most(experts)
	p.Quantization = cmp.Or(most(mlp), p.Experts)
	p.Attention = most(attention)
	if strings.EqualFold(q.Method, "fp8") { // only the experts differ from the method
		p.Quantization = "fp8"
	}
	if p.Experts == p.Quantization {
		p.Experts = ""
	}
	if p.Attention == p.Quantization {
		p.Attention = ""
	}
	return nil
}

// most returns the name with the highest count, of equal ones the first.
func most(counts map[string]int) (name string) {
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		if counts[n] > counts[name] {
			name = n
		}
	}
	return name
}

type hfQuantGroup struct {
	Weights *struct {
		Bits      int    `json:"num_bits"`
		Type      string `json:"type"`
		GroupSize int    `json:"group_size"`
	} `json:"weights"`
}

// format returns the name of the weights' format; "" for nil.
func (q *hfQuantization) format() (string, error) {
	if q == nil {
		return "", nil
	}
	switch method := strings.ToLower(q.Method); method {
	case "modelopt", "modelopt_fp4":
		return q.modelOpt()
	case "fbgemm_fp8":
		return "fp8", nil
	case "compressed-tensors":
		return q.compressed()
	case "gptq", "awq":
		switch bits := deref(q.Bits, 4); bits {
		case 4:
			return method, nil
		case 8:
			return "int8", nil
		default:
			return "", fieldError("quantization_config.bits", q.Bits, "must be 4 or 8")
		}
	case "":
		if q.Algo != "" || q.Groups != nil { // NVIDIA's quantizer leaves out its name
			return q.modelOpt()
		}
		return "", errors.New("quantization_config.quant_method: must be given")
	default:
		if _, err := quantizations.Get("quant_method", method); err != nil {
			return "", fmt.Errorf("quantization_config.quant_method: %w", err)
		}
		return method, nil
	}
}

func (q *hfQuantization) modelOpt() (string, error) {
	switch algo := strings.ToLower(q.Algo); algo {
	case "fp8", "nvfp4":
		return algo, nil
	default:
		return "", fmt.Errorf("quantization_config.quant_algo: must be FP8 or NVFP4, is %q", q.Algo)
	}
}

// compressed returns the format of compressed-tensors, whose groups must agree.
func (q *hfQuantization) compressed() (string, error) {
	found := ""
	for _, g := range q.Groups {
		if g.Weights == nil {
			continue
		}
		format := fmt.Sprintf("%s%d", map[string]string{"float": "fp"}[g.Weights.Type], g.Weights.Bits)
		if g.Weights.Type == "int" {
			format = fmt.Sprintf("int%d", g.Weights.Bits)
		}
		if format == "fp4" {
			format = "nvfp4"
			if g.Weights.GroupSize == 32 {
				format = "mxfp4"
			}
		}
		if found != "" && found != format {
			return "", errors.New("quantization_config.config_groups: weights in several formats are not supported")
		}
		found = format
	}
	if _, err := quantizations.Get("weight format", found); err != nil {
		return "", fmt.Errorf("quantization_config.config_groups: %w", err)
	}
	return found, nil
}

// layerNumber matches the layer index in a module name.
var layerNumber = regexp.MustCompile(`layers\W+(\d+)`)

// isAttention reports whether a module is the projections of attention or of a linear layer.
func isAttention(module string) bool {
	return strings.Contains(module, "attn") && !strings.Contains(module, "vision") && !strings.Contains(module,
		"norm") &&
		!strings.Contains(module, "index")
}

// isDenseMLP reports whether a module is a dense MLP or the shared experts.
func isDenseMLP(module string) bool {
	return strings.Contains(module, "shared_expert") && !strings.Contains(module, "gate") ||
		strings.HasSuffix(module, "mlp*")
}

// skips reports whether the modules of a kind are not quantized in nine of ten layers: by a pattern
// for all of them, or by a name for each.
func (q *hfQuantization) skips(layers int, is func(string) bool) bool {
	numbers := map[string]bool{}
	for _, list := range [][]string{q.NotConverted, q.Ignored, q.Ignore, q.Exclude} {
		for _, module := range list {
			if !is(module) {
				continue
			}
			n := layerNumber.FindStringSubmatch(module)
			if n == nil {
				return true
			}
			numbers[n[1]] = true
		}
	}
	return 10*len(numbers) >= 9*layers
}
