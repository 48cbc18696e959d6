package model

import (
	"errors"
	"fmt"
	"regexp"
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
}

type hfQuantGroup struct {
	Weights *struct {
		Bits int    `json:"num_bits"`
		Type string `json:"type"`
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

// skipsAttention reports whether the attention of all layers is not quantized: by a pattern for all
// of them, or by a name for each.
func (q *hfQuantization) skipsAttention(layers int) bool {
	if q == nil {
		return false
	}
	numbers := map[string]bool{}
	for _, list := range [][]string{q.NotConverted, q.Ignored, q.Ignore, q.Exclude} {
		for _, module := range list {
			if !strings.Contains(module, "attn") || strings.Contains(module, "vision") {
				continue
			}
			n := layerNumber.FindStringSubmatch(module)
			if n == nil {
				return true
			}
			numbers[n[1]] = true
		}
	}
	return len(numbers) >= layers
}
