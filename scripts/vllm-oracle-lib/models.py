"""Models with KV cache groups: their layers as vLLM's specs, and configurations with small windows."""

import math

# What the groups of a model follow from, by its name in BLIS. Sources: the config.json on Hugging Face.
MODELS = {
    "openai/gpt-oss-20b": {"model_type": "gpt_oss", "num_hidden_layers": 24, "num_key_value_heads": 8, "head_dim": 64,
                           "sliding_window": 128, "sliding_window_pattern": 2},
    "google/gemma-3-12b-it": {"model_type": "gemma3_text", "num_hidden_layers": 48, "num_key_value_heads": 8, "head_dim": 256,
                              "sliding_window": 1024, "sliding_window_pattern": 6},
    "google/gemma-4-26B-A4B": {"model_type": "gemma4_text", "num_hidden_layers": 30, "num_key_value_heads": 8, "head_dim": 256,
                               "num_global_key_value_heads": 2, "global_head_dim": 512, "sliding_window": 1024,
                               "sliding_window_pattern": 6},
}


def config_of(case):
    """The facts of a case's model; None if all its layers have full attention."""
    return case.document.get("model_config") or MODELS.get(case.cluster["deployments"][0]["model"])


def windows(config):
    """The window of each layer, 0 for full attention."""
    pattern, types = config.get("sliding_window_pattern"), config.get("layer_types")
    for i in range(config["num_hidden_layers"]):
        full = types[i] == "full_attention" if types else (i + 1) % pattern == 0
        yield 0 if full else config["sliding_window"]


def heads(config, window):
    """The number and the size of the key-value heads of a layer with this window."""
    count, size = config["num_key_value_heads"], config["head_dim"]
    return (count, size) if window else (config.get("num_global_key_value_heads", count), config.get("global_head_dim", size))


def block_size_of(config, window, block_size):
    """The tokens of a block in layers with this window: vLLM makes all pages as large as the largest."""
    pages = {w: math.prod(heads(config, w)) for w in set(windows(config))}
    ratio, rest = divmod(max(pages.values()), pages[window])
    return block_size * (1 if rest else ratio)


def small(rng):
    """A configuration of few layers with a small window."""
    layers = rng.choice([2, 3, 4, 5, 6, 7, 12])
    types = [rng.choice(["full_attention", "sliding_attention", "sliding_attention"]) for _ in range(layers)]
    if rng.random() < 0.9:  # otherwise perhaps all of one kind
        types[rng.randrange(layers)] = "full_attention"
    return {
        "model_type": "gpt_oss", "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "num_hidden_layers": layers, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 1000,
        "max_position_embeddings": 4096, "sliding_window": rng.choice([2, 3, 8, 16, 17, 33, 50, 64, 100]), "layer_types": types,
    }


def groups(config, vllm_config, block_size):
    """vLLM's KVCacheGroupSpecs of a model."""
    from vllm.v1 import kv_cache_interface as interface
    from vllm.v1.core import kv_cache_utils as grouping
    if not hasattr(grouping, "get_kv_cache_groups"):
        from vllm.v1.core import kv_cache_planning as grouping
    if hasattr(grouping, "get_hisparse_kv_cache_groups"):
        grouping.get_hisparse_kv_cache_groups = lambda *_: None
    interface.get_dtype_size = lambda _: 2
    specs = {}
    for i, window in enumerate(windows(config)):
        count, head_size = heads(config, window)
        size = dict(block_size=block_size, num_kv_heads=count, head_size=head_size, dtype=None)
        specs[f"layer.{i}"] = (interface.SlidingWindowSpec(**size, sliding_window=window) if window
                               else interface.FullAttentionSpec(**size))
    return grouping.get_kv_cache_groups(vllm_config, specs)


def needed(config, block_size, tokens, in_flight, ratio):
    """How many blocks a lone request holds at most."""
    if config is None:
        return -(-tokens // block_size)
    sizes = list(windows(config))
    kinds = {w: sizes.count(w) for w in sizes}
    fewest, most = min(kinds.values()), max(kinds.values())
    size = most if most < ratio * fewest else fewest
    total = 0
    for window, count in kinds.items():
        block = block_size_of(config, window, block_size)
        full = -(-tokens // block)
        held = min(full, -(-(window - 1 + in_flight) // block) + 1) if window else full
        total += held * (-(-count // size) if len(kinds) > 1 else 1)
    return total
