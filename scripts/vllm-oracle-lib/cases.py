"""Cases: a cluster of one replica and a workload, given in a file or random by a named regime."""

import copy
import json
import math
import pathlib
import random
import types

import door
import dp
import encoder
import grammar
import lora
import models
import pipeline
import speculation

MODEL, GPU, LAYERS = "meta-llama/Llama-3.1-8B-Instruct", "H100-SXM-80GB", 32
EXPERTS = "Qwen/Qwen3-30B-A3B"


class CaseError(Exception):
    """A case that cannot be read."""


def half_up(x):
    return math.floor(x + 0.5)


class Case:
    """A cluster and a workload, as BLIS reads them, and what the driver of vLLM needs of them."""

    def __init__(self, document):
        try:
            self.document, self.name = document, document["name"]
            self.cluster, self.workload = document["cluster"], document["workload"]
            (deployment,) = self.cluster["deployments"]
            self.engine, self.latency = deployment["engine"], deployment["latency"]
            self.tiers, self.offload = deployment.get("kv_tiers", []), deployment.get("kv_offload", {})
            self.disaggregated = deployment if deployment.get("architecture") == "disaggregated" else None
            self.pool, self.remote = None, ()
            classes = {}
            for c in self.workload[0].get("slo_classes", []):
                classes[c["name"]] = c["priority"]
            scheduler = self.cluster.get("policies", {}).get("scheduler", {}).get("type", "fcfs")
            self.policy = {"fcfs": "fcfs", "priority-fcfs": "priority"}[scheduler]
            self.requests = [self.request(i, r, classes) for i, r in enumerate(self.workload[1:])]
        except (KeyError, ValueError, TypeError, IndexError) as err:
            raise CaseError(f"not a case: {type(err).__name__} {err}") from err

    def request(self, position, record, classes):
        alpha = self.latency["alpha_us"]
        return types.SimpleNamespace(
            position=position, id=record["id"], input_tokens=record["input_tokens"], output_tokens=record["output_tokens"],
            prompt=record.get("prompt", []), deadline_us=record.get("deadline_us"), eos=record.get("stop") == "eos",
            draft_acceptance=record.get("draft_acceptance"), adapter=record.get("adapter"), grammar=record.get("grammar"),
            priority=classes.get(record.get("slo_class"), 0), arrival_us=record["arrival_us"],
            enqueued_us=record["arrival_us"] + half_up(alpha[0] + alpha[1] * record["input_tokens"]))

    def step_us(self, prefill, decode, context):
        """BLIS's linear latency model."""
        beta = self.latency["beta_us"]
        us = beta[0] + beta[1] * prefill + beta[2] * decode
        if len(beta) > 3:
            us += beta[3] * context
        return max(1, half_up(us))

    def client_delay_us(self):
        return half_up(self.latency["alpha_us"][2])

    def cluster_with(self, directory):
        """The cluster; a model configuration of the case's own goes to a file in directory."""
        if "model_config" not in self.document:
            return self.cluster
        file = pathlib.Path(directory, "config.json")
        file.write_text(json.dumps(self.document["model_config"]))
        (deployment,) = self.cluster["deployments"]
        return {**self.cluster, "deployments": [{**deployment, "model_config": str(file)}]}

    def side(self, pool, run):
        """The part of a disaggregated case that one pool sees, with the times at which the other one acts in a run of BLIS."""
        side = copy.copy(self)
        stated = self.disaggregated.get(pool, {})
        side.pool, side.engine = pool, {**self.engine, **stated.get("engine", {})}
        side.latency = {**self.latency, **stated.get("latency", {})}
        side.transfer_ends = {t[1]: t[-2] for t in run["transfers"] if t[0] == "pd"}
        side.requests, outcomes = [], run["requests"]
        for r in self.requests:
            o, r = outcomes[r.id], copy.copy(r)
            through = "prefill_replica" in o
            at = "prefill_enqueued_us" if pool == "prefill" else "enqueued_us"
            if pool == "prefill" and not through or at not in o:
                continue
            r.enqueued_us = o[at]
            if pool == "prefill":
                r.output_tokens, r.eos = 1, False
                if "prefilled_us" in o:
                    r.deadline_us = None
                    if "transfer_blocks" not in o:
                        side.transfer_ends[r.id] = o.get("ended_us")
            elif through:
                side.remote = (*side.remote, r.id)
            side.requests.append(r)
        if pool == "prefill":
            side.latency["alpha_us"] = [0, 0, 0]
        return side

    def without(self, positions):
        """The case without some requests."""
        kept = [r for i, r in enumerate(self.workload[1:]) if i not in positions]
        return Case({**self.document, "workload": self.workload[:1] + kept})


def read(file):
    try:
        with open(file, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError) as err:
        raise CaseError(str(err)) from err


# Each regime makes an engine, a latency model and requests by these settings.
REGIMES = {
    "mixed": "everything moderate",
    "tight-blocks": "few blocks: preemptions",
    "priority": "scheduling policy priority, often with few blocks",
    "victims": "priorities, short outputs and few blocks: requests preempt themselves, or ones that end",
    "prefixes": "shared prefixes in nested segments, often with few blocks",
    "turns": "conversations that contain earlier outputs",
    "chunked": "small token budgets and long_prefill_token_threshold",
    "unchunked": "chunked prefill off",
    "uncached": "prefix caching off",
    "deadlines": "requests aborted in every state",
    "aborts": "most requests aborted, with few blocks, often by priority",
    "adaptive": "threshold, also the adaptive one where the version has it, and few requests at a time",
    "bursts": "simultaneous arrivals and few batch slots",
    "eviction": "prefixes that come back after evictions",
    "reserve": "the admission rules of the version, and the other one where the version has both",
    "watermark": "a watermark where the version has it, with few blocks",
    "eos": "outputs that end by an end-of-sequence token, in another regime, also those with a connector",
    "spec": "speculative decoding (0.33) with all methods, in another regime without a connector",
    "lora": "LoRA adapters (0.33), in another regime without a connector, also with KV cache groups or speculative decoding",
    "grammar": "structured output (0.33), in another regime without a connector, also with KV cache groups, speculative decoding or LoRA",
    "pp": "pipeline parallelism with two to four stages (async: 0.33), in another regime without a connector, also with EOS or LoRA adapters",
    "encoder": "images in prompts (0.33), in another regime without a connector and without recurrent states",
    "cadence": "prefill_schedule_interval (0.33), in another regime without a connector, also with any other feature",
    "dp": "data-parallel ranks in lockstep (0.33), in another regime without a connector, also with speculative decoding",
    "door": "requests that the API server rejects, and max_num_active_seqs (0.31), in another regime without a connector",
    "offload": "a CPU tier where the version is one whose connector BLIS follows (0.33), in another regime with prefix caching",
    "offload-tight": "the same with few blocks in the tier",
    "nixl": "a prefill and a decode replica with vLLM's NixlConnector (0.33), in another regime",
    "nixl-offload": "the same with a CPU tier at each of them: MultiConnector with Nixl- and OffloadingConnector",
    "gpt-oss": "openai/gpt-oss-20b in another regime: a group of full attention and one of windows of 128 tokens",
    "gemma-3": "google/gemma-3-12b-it in another regime: five groups of windows of 1024 tokens and one of full attention",
    "gemma-4": "google/gemma-4-26B-A4B in another regime: the same groups, full attention with blocks of twice the tokens",
    "windows": "a small model with random windows and layers in another regime",
    "mamba": "a small model with random layers that have a recurrent state, of Mamba-2 or a gated delta net, in another regime",
}

# Regimes of models with KV cache groups.
GROUPED = {"gpt-oss": "openai/gpt-oss-20b", "gemma-3": "google/gemma-3-12b-it",
           "gemma-4": "google/gemma-4-26B-A4B", "windows": None, "mamba": None}


# Regimes with a CPU tier.
OFFLOADED = ("offload", "offload-tight")

# Regimes with a prefill pool.
DISAGGREGATED = ("nixl", "nixl-offload")

# Regimes that add something to another one, with or without a connector.
WRAPPERS = ("eos", "spec", "lora", "grammar", "door", "pp", "encoder", "cadence", "dp")

# The regimes of the scheduler alone.
ROTATION = [name for name in REGIMES if name not in OFFLOADED + DISAGGREGATED + WRAPPERS]

# Regimes in which many requests compete for blocks.
PRESSED = ("tight-blocks", "priority", "victims", "deadlines", "aborts", "eviction", "reserve", "watermark", "prefixes")


def random_case(regime, seed, index, preset, mode, settings):
    """Case number index of a regime. settings are the optional ones that the version has."""
    rng = random.Random(f"{seed}/{regime}/{index}")
    name, document, model = f"{regime}-{seed}-{index}-{mode}", {}, MODEL
    eos = 0  # the share of outputs that end by a token
    if regime == "eos":
        eos, regime = rng.choice([0.3, 1]), rng.choice([r for r in REGIMES if r not in WRAPPERS])
    cadence = regime == "cadence"
    if cadence:
        regime = rng.choice(["spec", "lora", "grammar", "door", "pp", "encoder",
                             *(r for r in REGIMES if r not in (*OFFLOADED, *DISAGGREGATED, *WRAPPERS))])
    parallel = regime == "dp"
    if parallel:
        model = EXPERTS
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice(["spec", *(r for r in REGIMES if r not in (*GROUPED, *OFFLOADED, *DISAGGREGATED, *WRAPPERS))])
    structured = regime == "grammar"
    if structured:
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice(["spec", "spec", "lora", *(r for r in REGIMES if r not in (*OFFLOADED, *DISAGGREGATED, *WRAPPERS))])
    staged = regime == "pp"
    if staged:
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice([r for r in REGIMES if r not in (*GROUPED, *OFFLOADED, *DISAGGREGATED, *WRAPPERS)])
    adapters = regime == "lora"
    if adapters:
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice(["spec", *(r for r in REGIMES if r not in (*OFFLOADED, *DISAGGREGATED, *WRAPPERS))])
    speculative = regime == "spec"
    if speculative:
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice([r for r in REGIMES if r not in (*GROUPED, *OFFLOADED, *DISAGGREGATED, *WRAPPERS)])
    encoded = regime == "encoder"
    if encoded:
        eos = rng.choice([0, 0, 0.3, 1])
        regime = rng.choice([r for r in REGIMES if r not in ("mamba", *OFFLOADED, *DISAGGREGATED, *WRAPPERS)])
    limited = regime == "door"
    if limited:
        regime = rng.choice([r for r in REGIMES if r not in (*OFFLOADED, *DISAGGREGATED, *WRAPPERS)])
    if regime in GROUPED:
        model = GROUPED[regime] or MODEL
        if GROUPED[regime] is None:
            document["model_config"] = (models.small_states if regime == "mamba" else models.small)(rng)
        regime = rng.choice([r for r in REGIMES if r not in (*GROUPED, *OFFLOADED, *DISAGGREGATED, *WRAPPERS)])
    offloaded = regime if regime in OFFLOADED else None
    disaggregated, both = regime in DISAGGREGATED, regime == "nixl-offload"
    if both:
        regime = rng.choice(["prefixes", "eviction", "eviction", "turns", "chunked", "priority", "deadlines", "reserve",
                             "watermark", "bursts", "tight-blocks"])
    elif disaggregated:
        regime = rng.choice(["mixed", "prefixes", "eviction", "turns", "chunked", "unchunked", "uncached", "priority", "deadlines", "aborts",
                             "reserve", "watermark", "bursts", "tight-blocks"])
    if offloaded:
        regime = rng.choice(["prefixes", "eviction", "eviction", "turns", "chunked", "priority", "deadlines", "reserve",
                             "watermark", "bursts", "tight-blocks"])
    config = document.get("model_config") or models.MODELS.get(model)
    window = config.get("sliding_window", 0) if config else 0
    engine, tight = random_engine(rng, regime, mode, settings)
    version = tuple(int(n) for n in preset.removeprefix("vllm-").split("."))
    if models.has_states(config):
        block = align_to_states(rng, engine, config, version)
    by_priority = regime in ("priority", "victims") or regime == "aborts" and rng.random() < 0.5
    requests = random_requests(rng, regime, engine, by_priority, window)
    if models.has_states(config):
        lengthen(rng, requests, engine, block)
    if speculative:
        speculation.random_speculation(rng, engine, requests)
    if adapters:
        lora.random_adapters(rng, engine, requests)
    if encoded:
        encoder.random_images(rng, engine, requests)
    if limited:
        door.random_limits(rng, engine, requests)
    if parallel:
        dp.random_ranks(rng, engine)
    if cadence:
        engine["prefill_schedule_interval"] = rng.choice([2, 2, 3, 4, 8, 20])
    if staged:
        pipeline.random_pipeline(rng, engine, mode, version)
        if version >= (0, 33) and rng.random() < 0.25:
            lora.random_adapters(rng, engine, requests)
    classes = sorted({r["slo_class"] for r in requests if "slo_class" in r})
    size_cache(rng, engine, requests, tight, config, version)
    if speculative and rng.random() < 0.3:
        longest = max(r["input_tokens"] + r["output_tokens"] for r in requests)
        engine["max_model_len"] = min(engine["max_model_len"], longest + rng.randint(0, 4))
    beta = [rng.randint(500, 10000), rng.randint(1, 100), rng.randint(1, 300)]
    if rng.random() < 0.3:
        beta.append(rng.randint(0, 16) / 8)
    alpha = [0, 0, 0]
    if rng.random() < 0.3:
        alpha = [rng.randint(0, 5000), rng.randint(0, 20), rng.randint(0, 500)]
    if structured:
        grammar.random_grammars(rng, engine, requests, beta)
    place(rng, regime, requests, beta, engine)
    if eos:
        for r in requests:
            if rng.random() < eos:
                r["stop"] = "eos"
    tiers = {}
    if offloaded and version >= (0, 33):
        tiers = random_tiers(rng, engine, offloaded == "offload-tight", beta)
    if disaggregated and version >= (0, 33):
        if both:
            tiers = random_tiers(rng, engine, rng.random() < 0.5, beta)
        tiers.update(random_pools(rng, regime, engine, requests, beta, mode, settings, version))
    policies = {"routing": {"type": "round-robin"}}
    if by_priority:
        policies.update(priority={"type": "slo-based"}, scheduler={"type": "priority-fcfs"},
                        preemption={"type": "lowest-priority"})
    header = {"kind": "header", "stream": "workload", "stream_version": 2}
    if classes:
        header["slo_classes"] = [{"name": c, "tier": "standard", "priority": int(c[1:])} for c in classes]
    return Case({
        "name": name, **document,
        "cluster": {"version": 1, "deployments": [{
            "id": "main", "model": model, "gpu": GPU, "replicas": 1, "engine": {"preset": preset, **engine},
            "latency": {"model": "linear", "alpha_us": alpha, "beta_us": beta}, **tiers}],
            "control_plane": {"admission_latency_us": 0, "routing_latency_us": 0}, "policies": policies},
        "workload": [header, *requests]})


def random_engine(rng, regime, mode, settings):
    seqs = rng.choice([1, 2, 4, 8, 16, 64])
    budget = rng.choice([16, 32, 64, 100, 256, 1024, 8192])
    if regime == "bursts":
        seqs = rng.choice([1, 2, 3, 4])
    if regime in PRESSED:
        seqs, budget = rng.choice([4, 8, 16, 64]), rng.choice([32, 64, 100, 256, 1024, 8192])
    if regime == "chunked":
        budget = rng.choice([8, 16, 17, 33, 64])
        seqs = rng.choice([1, 2, 4, 8])
    if regime == "victims":
        seqs, budget = 64, 256
    if regime == "unchunked":
        budget = rng.choice([128, 200, 300, 512])
    engine = {
        "max_num_seqs": seqs, "max_num_batched_tokens": max(budget, seqs),
        "block_size": rng.choice([1, 2, 4] if regime == "victims" else [4, 8, 16, 16, 32]),
        "enable_prefix_caching": regime != "uncached" and (regime not in ("mixed", "tight-blocks") or rng.random() < 0.8),
        "enable_chunked_prefill": regime != "unchunked", "async_scheduling": mode == "async", "max_model_len": 4096,
    }
    if regime == "chunked" and rng.random() < 0.7 or rng.random() < 0.1:
        engine["long_prefill_token_threshold"] = rng.choice([1, 5, 16, 20, 64])
    if regime == "adaptive":
        engine["long_prefill_token_threshold"] = rng.choice([1, 3, 5, 8])
        engine["max_num_seqs"], engine["max_num_batched_tokens"] = rng.choice([1, 2, 4, 8]), rng.choice([16, 33, 64, 100])
        if "long_prefill_token_threshold_adaptive" in settings:
            engine["long_prefill_token_threshold_adaptive"] = rng.random() < 0.7
    if regime == "unchunked":
        engine["max_model_len"] = engine["max_num_batched_tokens"]
    if regime == "watermark" and "watermark" in settings:
        engine["watermark"] = rng.choice([0.01, 0.05, 0.1, 0.2, 0.3])
    if regime == "reserve" and "scheduler_reserve_full_isl" in settings:
        engine["reserve_full_sequence"] = rng.random() < 0.5
    tight = regime in ("tight-blocks", "victims", "reserve", "watermark", "eviction") or rng.random() < {
        "priority": 0.8, "prefixes": 0.5, "deadlines": 0.6, "aborts": 0.9, "turns": 0.5, "uncached": 0.5}.get(regime, 0.2)
    return engine, tight


def random_requests(rng, regime, engine, by_priority, window):
    longest = rng.choice([20, 60, 150, 300])
    if regime == "victims":
        longest = 40
    if window > 300 and rng.random() < 0.7:
        longest += window
    if regime == "unchunked":
        longest = engine["max_model_len"] * 2 // 3
    most = rng.choice([12, 40, 60] if regime in PRESSED else [1, 4, 12, 40, 60])
    if regime == "unchunked":
        most = min(most, engine["max_model_len"] - longest)
    requests, trees = [], [[f"t{i}.{k}" for k in range(4)] for i in range(rng.randint(1, 6))]
    lengths = {name: rng.randint(1, max(1, longest // 3)) for tree in trees for name in tree}
    shares = {"prefixes": 0.85, "eviction": 0.85, "deadlines": 0.5, "aborts": 0.5, "mixed": 0.4, "uncached": 0.3, "turns": 0,
              "reserve": 0.4}.get(regime, 0.25)
    chats = {}
    for i in range(rng.randint(6 if regime in PRESSED else 3, 28)):
        r = {"kind": "request", "id": f"r{i:03}", "arrival_us": 0, "input_tokens": rng.randint(1, longest),
             "output_tokens": rng.randint(1, most)}
        if rng.random() < shares:
            tree, prompt = rng.choice(trees), []
            for name in tree[:rng.randint(1, len(tree))]:
                prompt.append({"id": name, "tokens": lengths[name] if rng.random() < 0.9 else rng.randint(1, lengths[name])})
                if prompt[-1]["tokens"] < lengths[name]:
                    break
            r["prompt"] = prompt
            r["input_tokens"] = sum(s["tokens"] for s in prompt) + (0 if rng.random() < 0.2 else rng.randint(1, longest))
        elif regime == "turns":
            chat = rng.randint(0, 4)
            text = chats.setdefault(chat, [])
            text.append({"id": f"c{chat}.{i}", "tokens": rng.randint(1, longest // 3)})
            r["prompt"], r["input_tokens"] = list(text), sum(s["tokens"] for s in text)
            text.append({"id": f"{r['id']}.out", "tokens": r["output_tokens"]})
        limit = engine["max_model_len"] - r["output_tokens"]
        if r["input_tokens"] > limit:
            r["input_tokens"] = limit
            r.pop("prompt", None)
        if by_priority:
            r["slo_class"] = f"p{rng.choice([0, 0, 10, 50, 100])}"
        if regime == "victims":  # the victims end soon
            r["output_tokens"] = rng.choice([2, 3, 4] if r["slo_class"] == "p0" else [6, 10, 20])
        requests.append(r)
    return requests


def align_to_states(rng, engine, config, version):
    """Makes an engine one with which vLLM starts a model with recurrent states, and returns the tokens of a block."""
    checkpoints = version >= (0, 33)
    block = models.state_block(config, engine["block_size"], checkpoints, engine["enable_prefix_caching"])
    if engine["enable_prefix_caching"]:
        engine["enable_chunked_prefill"] = True
        if version < (0, 28):  # since then a block can be larger than a step
            engine["max_num_batched_tokens"] = max(engine["max_num_batched_tokens"], block)
            if "long_prefill_token_threshold" in engine:
                engine["long_prefill_token_threshold"] += block
        elif rng.random() < 0.6:
            engine["max_num_batched_tokens"] = max(engine["max_num_batched_tokens"], rng.choice([1, 2, 3]) * block)
    return block


def lengthen(rng, requests, engine, block):
    """Makes prompts so long that they have several blocks of recurrent states."""
    more = {}
    for r in requests:
        room = engine["max_model_len"] - r["input_tokens"] - r["output_tokens"]
        prompt = r.pop("prompt", [])
        for s in prompt:
            extra = more.setdefault(s["id"], rng.choice([0, 0, block, block, rng.randint(0, 2 * block)]))
            if s["id"].endswith(".out"):
                extra = 0
            if extra > room:
                break
            r.setdefault("prompt", []).append({**s, "tokens": s["tokens"] + extra})
            r["input_tokens"] += extra
            room -= extra
        extra = rng.choice([0, 0, rng.randint(0, 3 * block)])
        if extra <= room:
            r["input_tokens"] += extra


def random_tiers(rng, engine, tight, beta):
    """A CPU tier whose links move a block in a fraction or a few times of the time of a step."""
    engine["enable_prefix_caching"] = True
    engine["kv_bytes_per_block"] = 1000
    blocks = engine["num_gpu_blocks_override"]

    def link():
        us = beta[0] * rng.choice([0.003, 0.03, 0.3, 1]) * rng.uniform(0.5, 2)
        return {"latency_us": rng.choice([0, 0, beta[0] / 4, beta[0]]), "gb_per_s": 1 / max(1, round(us))}

    return {"kv_tiers": [{"tier": "cpu", "blocks": rng.randint(2, 2 * blocks) if tight else 1000 * blocks,
                          "load": link(), "store": link()}],
            "kv_offload": {"eviction": rng.choice(["lru", "arc"]), "min_load_blocks": 1}}


def random_pools(rng, regime, engine, requests, beta, mode, settings, version):
    """A prefill pool with another engine, and links that move a block in a fraction or a few times of the time of a step."""
    engine["kv_bytes_per_block"] = 1000
    other, tight = random_engine(rng, regime, mode, settings)
    if "reserve_full_sequence" in engine:
        other["reserve_full_sequence"] = engine["reserve_full_sequence"]
    other.update({k: engine[k] for k in ["block_size", "enable_prefix_caching", "max_model_len"]})
    if regime == "unchunked":
        other["max_num_batched_tokens"] = engine["max_num_batched_tokens"]
    size_cache(rng, other, [{**r, "output_tokens": 1} for r in requests], tight or rng.random() < 0.5, None, version)
    other["max_model_len"] = min(other["max_model_len"], engine["max_model_len"])
    us = max(1, round(beta[0] * rng.choice([0.003, 0.03, 0.3, 1]) * rng.uniform(0.5, 2)))
    return {"architecture": "disaggregated",
            "prefill": {"engine": other, "latency": {"beta_us": [rng.randint(500, 10000), rng.randint(1, 100), rng.randint(1, 300)]}},
            "transfer": {"latency_us": rng.choice([0, 0, beta[0] // 4, beta[0]]), "out_gb_per_s": 1 / us, "in_gb_per_s": rng.choice([1, 2]) / us,
                         "hop_us": rng.choice([0, 0, beta[0]])},
            "decider": rng.choice([{"type": "always"}, {"type": "always"}, {"type": "prefix-based", "non_cached_tokens": 30}])}


def size_cache(rng, engine, requests, tight, config, version):
    """Chooses the number of blocks: enough for the largest request, or for all of them."""
    b = engine["block_size"]
    if models.has_states(config):
        b = models.state_block(config, b, version >= (0, 33), engine["enable_prefix_caching"])
    # Before 0.24 a request that must fit as a whole must do so without the recycling of windows.
    in_flight = 2 * engine["max_num_batched_tokens"] if version >= (0, 24) else 1 << 30
    needs = [models.needed(config, b, r["input_tokens"] + r["output_tokens"] + speculation.extra_tokens(engine), in_flight, 1.5 if version >= (0, 19) else 1.25) for r in requests]
    if tight:
        blocks = max(max(needs), int(max(needs) * rng.choice([1, 1.1, 1.3, 1.6, 2, 3])))
    else:
        blocks = sum(needs) + rng.randint(0, 20)
    engine["num_gpu_blocks_override"] = blocks + 1  # and the null block
    engine["max_model_len"] = min(engine["max_model_len"], b * blocks)


def place(rng, regime, requests, beta, engine):
    """Chooses arrivals and deadlines around the time that the work takes."""
    step = beta[0] + beta[1] * min(100, engine["max_num_batched_tokens"])
    gap = step * rng.choice([0, 0.2, 1, 3] if regime in PRESSED else [0, 0.2, 1, 3, 10])
    if regime == "bursts":
        gap = step * rng.choice([0, 5])
    if regime == "adaptive":
        gap = step * rng.choice([1, 5, 20])
    deadlines = {"deadlines": 0.6, "aborts": 0.9}.get(regime, 0)
    now = 0
    for r in requests:
        r["arrival_us"] = now
        if rng.random() < (0.3 if regime == "bursts" else 0.9):
            now += int(rng.expovariate(1 / gap)) if gap >= 1 else 0
        if rng.random() < deadlines:
            r["deadline_us"] = r["arrival_us"] + 1 + int(step * (1 + r["output_tokens"]) * rng.choice([0.3, 1, 2, 5]) * rng.random())
