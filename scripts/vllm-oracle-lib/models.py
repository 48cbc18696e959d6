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


STATE = -1  # instead of a window: the layer has a recurrent state


def windows(config):
    """The window of each layer, 0 for full attention, STATE for a recurrent state."""
    if config.get("layers_block_type"):  # layers without a cache are left out
        yield from ({"mamba": STATE, "attention": 0}[x] for x in config["layers_block_type"] if x != "mlp")
        return
    if "linear_attention" in config.get("layer_types", []):
        yield from (STATE if x == "linear_attention" else 0 for x in config["layer_types"])
        return
    pattern, types = config.get("sliding_window_pattern"), config.get("layer_types")
    for i in range(config["num_hidden_layers"]):
        full = types[i] == "full_attention" if types else (i + 1) % pattern == 0
        yield 0 if full else config["sliding_window"]


def heads(config, window):
    """The number and the size of the key-value heads of a layer with this window."""
    count, size = config["num_key_value_heads"], config["head_dim"]
    return (count, size) if window else (config.get("num_global_key_value_heads", count), config.get("global_head_dim", size))


def state_bytes(config):
    """The bytes of the recurrent state of a layer: of the convolution and of the rest (MambaStateShapeCalculator in
    vllm/model_executor/layers/mamba/mamba_utils.py)."""
    if config["model_type"] == "nemotron_h":
        keys, values = config["n_groups"] * config["ssm_state_size"], config["mamba_num_heads"] * config["mamba_head_dim"]
        return 2 * (values + 2 * keys) * (config["conv_kernel"] - 1) + 2 * values * config["ssm_state_size"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    return 2 * (values + 2 * keys) * (config["linear_conv_kernel_dim"] - 1) + 4 * values * config["linear_key_head_dim"]


def has_states(config):
    return config is not None and STATE in windows(config)


def state_block(config, block_size, checkpoints, cached):
    """The tokens of a block in a model with recurrent states (Platform._align_hybrid_block_size in
    vllm/platforms/interface.py): the page of a layer with attention takes a state."""
    token = 2 * 2 * math.prod(heads(config, 0))
    unit = max(16, block_size)
    if cached and checkpoints and config["model_type"] != "nemotron_h":
        unit = math.lcm(unit, 64)  # FLASHINFER_GDN_CHECKPOINT_ALIGNMENT
    return max(block_size, unit * -(-state_bytes(config) // (unit * token)))


def checkpoint_blocks(directory, config):
    """How many states the layers of a version write within a prompt."""
    file = "mamba_mixer2.py" if config["model_type"] == "nemotron_h" else "gdn/qwen_gdn_linear_attn.py"
    source = directory / "vllm/model_executor/layers/mamba" / file
    return int(source.exists() and "num_prefill_checkpoint_blocks=1" in source.read_text())


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


def small_states(rng):
    """A configuration of few layers of which most have a recurrent state."""
    layers = rng.choice([2, 3, 4, 5, 7, 8])
    kinds = [rng.choice([0, 1, 1, 1]) for _ in range(layers)]
    kinds[rng.randrange(1, layers)], kinds[0] = 0, 1
    config = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": rng.choice([1, 2]),
              "head_dim": rng.choice([16, 32]), "vocab_size": 1000, "max_position_embeddings": 4096}
    if rng.random() < 0.5:
        return {"model_type": "nemotron_h", **config, "layers_block_type": ["mamba" if k else "attention" for k in kinds] + ["mlp"],
                "n_groups": 1, "ssm_state_size": rng.choice([8, 16, 32]), "mamba_num_heads": rng.choice([2, 4]),
                "mamba_head_dim": rng.choice([8, 16, 24]), "conv_kernel": 4}
    return {"model_type": "qwen3_5_text", **config, "num_hidden_layers": layers,
            "layer_types": ["linear_attention" if k else "full_attention" for k in kinds], "linear_conv_kernel_dim": 4,
            "linear_num_key_heads": 1, "linear_key_head_dim": rng.choice([4, 8, 16]), "linear_num_value_heads": rng.choice([2, 4]),
            "linear_value_head_dim": rng.choice([4, 8, 16])}


def groups(config, vllm_config, block_size, checkpoints=0):
    """vLLM's KVCacheGroupSpecs of a model."""
    from vllm.v1 import kv_cache_interface as interface
    from vllm.v1.core import kv_cache_utils as grouping
    if not hasattr(grouping, "get_kv_cache_groups"):
        from vllm.v1.core import kv_cache_planning as grouping
    if hasattr(grouping, "get_hisparse_kv_cache_groups"):
        grouping.get_hisparse_kv_cache_groups = lambda *_: None
    interface.get_dtype_size = lambda _: 2
    specs, cache = {}, vllm_config.cache_config
    for i, window in enumerate(windows(config)):
        count, head_size = heads(config, window)
        if window == STATE:
            more = dict(num_prefill_checkpoint_blocks=1, prefill_checkpoint_alignment=1) if checkpoints else {}
            specs[f"layer.{i}"] = interface.MambaSpec(
                shapes=((state_bytes(config) // 2,),), dtypes=(None,), mamba_cache_mode=cache.mamba_cache_mode,
                block_size=block_size if cache.enable_prefix_caching else vllm_config.model_config.max_model_len,
                page_size_padded=block_size * 2 * 2 * count * head_size, **more)
            continue
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
        if window == STATE:
            held = min(full, 4)
        total += held * (-(-count // size) if len(kinds) > 1 else 1)
    return total
