"""Speculative decoding: the configuration of a case, and which of its drafts are accepted."""

import ast
import types

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def configure(directory, config, stated):
    """Sets the speculative decoding of a case in VllmConfig. What follows from it is computed by vLLM's own code."""
    from vllm.config.speculative import SpeculativeConfig
    spec = config.speculative_config = object.__new__(SpeculativeConfig)
    schedule = stated.get("num_speculative_tokens_per_batch_size")
    for name, value in dict(
            method=stated["method"], num_speculative_tokens=stated["num_speculative_tokens"], parallel_drafting=False,
            draft_model_config=None, disable_eagle_block_drop=stated.get("disable_eagle_block_drop", False),
            disable_lookahead_block_hashes=stated.get("disable_lookahead_block_hashes", False),
            num_speculative_tokens_per_batch_size=schedule and [tuple(e) for e in schedule]).items():
        setattr(spec, name, value)
    config.kv_transfer_config = None
    tree = ast.parse(directory.joinpath("vllm/config/vllm.py").read_text())
    for name in "num_speculative_tokens", "num_lookahead_tokens", "num_prefill_lookahead_tokens", "num_hash_lookahead_tokens":
        setattr(config, name, compute(tree, name, config))


def compute(tree, name, config):
    """The value of a property of VllmConfig."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = []
            names = {}
            exec(compile(ast.Module([node], []), "vllm/config/vllm.py", "exec"), names)
            return names[name](config)
    raise AttributeError(f"VllmConfig has no {name}")


def rates(stated):
    """The probability that each draft is accepted if those before it are."""
    if "acceptance_rate" in stated:
        return [stated["acceptance_rate"]] * stated["num_speculative_tokens"]
    shares = stated["synthetic_acceptance_rates"]
    return [s / before if before else 0 for s, before in zip(shares, [1, *shares])]


def accepted(stated, r, generated, drafts):
    """How many drafts of a request that has generated tokens are accepted, with the seed 0."""
    for i in range(drafts):
        rate = rates(stated)[i] if r.draft_acceptance is None else r.draft_acceptance
        if draw(seed(r.id), generated + i) >= rate:
            return i
    return drafts


def seed(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = (h ^ c) * 0x100000001B3 & MASK
    return h


def draw(key, position):
    """A number from 0 to below 1: SplitMix64."""
    z = (key + GAMMA * (position + 1)) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return ((z ^ z >> 31) >> 11) / (1 << 53)


def draft_us(stated, proposals, requests):
    """The time of the drafter behind a step."""
    return int(proposals * (stated["draft_pass_us"] + stated["draft_sequence_us"] * requests) + 0.5) if proposals else 0


def drafts_of(output):
    """The drafts that a step of the V2 model runner proposes for each of its requests: none if no request can use them."""
    n = 0 if output.skip_drafts else output.num_spec_tokens_to_schedule
    return types.SimpleNamespace(req_ids=list(output.num_scheduled_tokens),
                                 draft_token_ids=[[0] * n for _ in output.num_scheduled_tokens])


def random_speculation(rng, engine, requests):
    """Speculative decoding for a case, and what it needs of the engine and the requests."""
    n = rng.choice([1, 1, 2, 3, 3, 5, 8])
    stated = {"method": rng.choice(["mtp", "eagle", "eagle3", "ngram", "draft_model"]), "num_speculative_tokens": n}
    if rng.random() < 0.6:
        stated["acceptance_rate"] = rng.choice([0, 0.3, 0.6, 0.8, 0.9, 1])
    else:
        share, shares = 1, []
        for _ in range(n):
            share = share * rng.choice([0.4, 0.7, 0.9, 1])
            shares.append(share)
        stated["synthetic_acceptance_rates"] = shares
    if stated["method"] in ("mtp", "eagle", "eagle3"):
        if rng.random() < 0.35:
            stated["disable_lookahead_block_hashes"] = True
        elif rng.random() < 0.15:
            stated["disable_eagle_block_drop"] = True
    if rng.random() < 0.2:
        first, second = sorted(rng.sample(range(1, 12), 2))
        stated["num_speculative_tokens_per_batch_size"] = [[1, first, n], [first + 1, second, rng.randint(0, n)],
                                                           [second + rng.randint(1, 3), 64, rng.randint(0, n)]]
    stated["draft_pass_us"], stated["draft_sequence_us"] = rng.choice([0, 100, 250.5]), rng.choice([0, 1, 0.25])
    engine["speculative_config"] = stated
    if "long_prefill_token_threshold" in engine:
        engine["long_prefill_token_threshold"] = max(engine["long_prefill_token_threshold"], 1 + n)
    engine["max_num_batched_tokens"] = max(engine["max_num_batched_tokens"], 2 + n)
    if rng.random() < 0.3:
        for r in requests:
            if rng.random() < 0.5:
                r["draft_acceptance"] = rng.choice([0, 0.5, 1])


def extra_tokens(engine):
    """How many more tokens than its own a request may have blocks for."""
    stated = engine.get("speculative_config")
    return 3 * stated["num_speculative_tokens"] + 2 if stated else 0
