"""Images in prompts: the encoder of a case, and how long steps take with it."""

import math
import types

# vLLM releases the items of a request in the order of a set of their numbers, which is the rising one below this number.
MOST = 8


class Position:
    """A PlaceholderRange, each token of which has an embedding."""

    def __init__(self, offset, length):
        self.offset, self.length = offset, length

    def get_num_embeds(self):
        return self.length

    def get_embeds_indices_in_range(self, start, end):
        return start, end


def configure(config, engine):
    """Sets the encoder of a case in VllmConfig, and the budget that vLLM makes of it."""
    if not (most := engine.get("mm_max_tokens_per_item")):
        return
    from vllm.v1.core.encoder_cache_manager import compute_mm_encoder_budget
    from vllm.v1.core.sched import scheduler
    s = config.scheduler_config
    s.max_num_encoder_input_tokens = engine.get("max_num_encoder_input_tokens", s.max_num_batched_tokens)
    s.encoder_cache_size = engine.get("encoder_cache_size", s.max_num_batched_tokens)
    s.disable_chunked_mm_input = engine.get("disable_chunked_mm_input", False)
    config.model_config.supports_multimodal_inputs = True
    compute, size = compute_mm_encoder_budget(s, {"image": most})
    budget = types.SimpleNamespace(encoder_compute_budget=compute, encoder_cache_size=size, mm_max_toks_per_item={"image": most})
    scheduler.MultiModalBudget = lambda *_: budget


def features(prompt):
    """The MultiModalFeatureSpecs of the media in a prompt."""
    found, offset = [], 0
    for s in prompt:
        if "media" in s:
            found.append(types.SimpleNamespace(data=None, modality=s["media"], identifier=f"{s['id']} {s['tokens']}", mm_hash=None,
                                               mm_position=Position(offset, s["tokens"])))
        offset += s["tokens"]
    return found


def step_us(engine, requests, scheduled):
    """How long the encoder takes for what a step encodes."""
    us = 0.0
    for name, items in scheduled.items():
        for i in items:
            tokens = requests[name].mm_features[i].mm_position.length
            us += engine.get("encoder_item_us", 0) + engine["encoder_token_us"] * tokens
    return math.floor(us + 0.5)


def random_images(rng, engine, requests):
    """Images for the requests of a case, and an encoder for them."""
    largest = rng.choice([4, 16, 60, 200])
    images = [{"id": f"image-{k}", "tokens": rng.randint(1, largest), "media": "image"} for k in range(rng.randint(1, 8))]
    after, share = {}, rng.choice([0.3, 0.6, 1])

    def some():
        return [dict(min(rng.choice(images), rng.choice(images), key=lambda x: x["id"])) for _ in range(rng.choice([1, 1, 2, 3]))]

    for r in requests:
        room = engine["max_model_len"] - r["input_tokens"] - r["output_tokens"]
        prompt, count = [], 0
        parts = [("", [])] if rng.random() < 0.7 * share else []
        for name, segments in parts + [(s["id"], [s]) for s in r.get("prompt", [])]:
            prompt += segments
            if name not in after or not name:
                after[name] = some() if rng.random() < share else []
            for image in after[name]:
                if image["tokens"] <= room and count < MOST:
                    prompt.append(image)
                    room, count = room - image["tokens"], count + 1
                    r["input_tokens"] += image["tokens"]
        if rng.random() < 0.4 and count < MOST and room >= 5:
            image = rng.choice(images)
            if image["tokens"] + 5 <= room:
                prompt += [{"id": f"text-{rng.randint(0, 2)}", "tokens": 5}, image]
                r["input_tokens"] += 5 + image["tokens"]
        if prompt:
            r["prompt"] = prompt
    most = max([s["tokens"] for r in requests for s in r.get("prompt", []) if "media" in s], default=1)
    engine.update(mm_max_tokens_per_item=most, encoder_token_us=rng.choice([0, 1, 12.5, 100]),
                  encoder_item_us=rng.choice([0, 0, 500, 3000]))
    for name in "max_num_encoder_input_tokens", "encoder_cache_size":
        if rng.random() < 0.7:
            engine[name] = most + rng.choice([0, rng.randint(0, most), rng.randint(0, 4 * most)])
    step = min(engine["max_num_batched_tokens"], engine.get("long_prefill_token_threshold") or most)
    engine["disable_chunked_mm_input"] = most <= step and rng.random() < 0.4
