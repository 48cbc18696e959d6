"""Pipeline parallelism: the configuration of a case, and when the stages of a virtual pipeline compute its batches."""

import math


def stages_of(engine):
    return engine.get("pipeline_parallel_size", 1)


def uses_v2(engine, version):
    """Whether the model runner is V2, as BLIS assumes for a version."""
    return engine.get("use_v2_model_runner", version >= (0, 31))


def concurrent_batches(engine, version):
    """VllmConfig.max_concurrent_batches, and that of MultiprocExecutor in 0.19."""
    stages = stages_of(engine)
    if engine["async_scheduling"]:
        if uses_v2(engine, version) or stages == 1:
            return stages + 1
    return stages


def configure(config, engine, version):
    config.parallel_config.pipeline_parallel_size = stages_of(engine)
    config.use_v2_model_runner = uses_v2(engine, version) if stages_of(engine) > 1 else True
    batches = concurrent_batches(engine, version)
    config.max_concurrent_batches, config.max_in_flight_tokens = batches, batches * engine["max_num_batched_tokens"]


class Pipeline:
    """Stage i computes a batch when it has computed the one before, and stage i-1 this one. With asynchronous scheduling
    the first stage gets the sampled tokens of an earlier batch from the last stage and waits for them: with the V2 model
    runner those of the batch that is as many batches earlier as there are stages (PPHandler.get_prev_sampled_outputs),
    with V1 those of the last one (_pp_receive_prev_sampled_token_ids_to_input_batch)."""

    def __init__(self, engine, version, layers):
        n = stages_of(engine)
        shares = [layers // n] * n
        for i in range(layers % n):
            shares[-2 - i] += 1  # get_pp_indices in vllm/distributed/utils.py
        self.bounds = [sum(shares[:i]) for i in range(n + 1)]
        self.free, self.sampled = [0] * n, []
        self.back = (n if uses_v2(engine, version) else 1) if engine["async_scheduling"] else None
        self.hop = engine.get("pipeline_hop_us", 0), engine.get("pipeline_hop_token_us", 0)

    def place(self, number, now, us, tokens, samples):
        """Start and end of a batch with a number that takes us in all stages together."""
        start = max(now, self.free[0])
        if self.back is not None:
            start = max([start] + [end for n, end in self.sampled if n <= number - self.back])
        at, total = start, self.bounds[-1]
        for i in range(len(self.free)):
            if i > 0:
                at += math.floor(self.hop[0] + self.hop[1] * tokens + 0.5)
            at = max(at, self.free[i]) + us * self.bounds[i + 1] // total - us * self.bounds[i] // total
            self.free[i] = at
        if samples:
            self.sampled.append((number, at))
        return start, at


def random_pipeline(rng, engine, mode, version):
    """Stages for a case."""
    engine["pipeline_parallel_size"] = rng.choice([2, 2, 3, 4])
    if mode == "sync" and rng.random() < 0.5:
        engine["use_v2_model_runner"] = rng.random() < 0.5
    if rng.random() < 0.4:
        engine["pipeline_hop_us"] = rng.choice([0, 5.5, 300])
        engine["pipeline_hop_token_us"] = rng.choice([0, 0.5, 4])
