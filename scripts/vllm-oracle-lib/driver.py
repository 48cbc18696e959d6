"""Runs a case through the real scheduler of vLLM on a virtual clock.

The loop is EngineCore's own: step, or step_with_batch_queue with asynchronous scheduling. Only the
executor is not vLLM's: it takes the time of the case's latency model and returns arbitrary tokens.
"""

import ast
import collections
import functools
import inspect
import math
import queue
import traceback
import types

import cases
import door
import encoder
import grammar
import lora
import models
import multi
import nixl
import offload
import pipeline
import speculation


class DriverError(Exception):
    """A case that vLLM's scheduler cannot run."""


def run(directory, case):
    """Returns what vLLM does with a case: steps, preemptions and requests."""
    return checked(directory, case, lambda: Run(directory, case).play())


def checked(directory, case, play):
    try:
        return play()
    except (AttributeError, TypeError, ImportError, KeyError, AssertionError) as err:
        *_, last = traceback.extract_tb(err.__traceback__)
        raise DriverError(f"case {case.name}: the scheduler of vLLM {directory.name} cannot be driven: {type(err).__name__}: "
                          f"{err} ({last.filename}:{last.lineno})") from err


@functools.cache
def literals(directory, name):
    """The literal defaults of a class in vllm/config."""
    for file in sorted(directory.joinpath("vllm").glob("config/*.py")):
        text = file.read_text()
        for node in ast.parse(text).body if f"class {name}" in text else ():
            if isinstance(node, ast.ClassDef) and node.name == name:
                return constants_of(node)
    raise DriverError(f"vllm/config has no class {name}")


def constants_of(node):
    constants = {}
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            continue
        value = statement.value
        if isinstance(value, ast.Call):  # Field(default=...), field(default=...)
            given = [k.value for k in value.keywords if k.arg == "default"] + value.args
            if not given:
                continue
            value = given[0]
        try:
            constants[statement.target.id] = ast.literal_eval(value)
        except ValueError:
            if isinstance(value, ast.Name) and value.id in constants:
                constants[statement.target.id] = constants[value.id]
    return constants


def configuration(directory, case):
    """VllmConfig of a case: vLLM's own defaults and what the case's engine states."""
    e = case.engine
    batches = 2 if e["async_scheduling"] else 1
    config = Plain(**literals(directory, "VllmConfig"), num_speculative_tokens=0, num_lookahead_tokens=0,
                   num_prefill_lookahead_tokens=0, num_hash_lookahead_tokens=0, use_v2_model_runner=True,
                   max_concurrent_batches=batches, max_in_flight_tokens=batches * e["max_num_batched_tokens"],
                   aux_output_config=types.SimpleNamespace(enabled=False),
                   ec_manager_config=types.SimpleNamespace(get_encoder_cache_manager_obj=lambda: None))
    for field, name in [("scheduler_config", "SchedulerConfig"), ("cache_config", "CacheConfig"), ("model_config", "ModelConfig"),
                        ("parallel_config", "ParallelConfig"), ("observability_config", "ObservabilityConfig")]:
        setattr(config, field, Plain(**literals(directory, name)))
    s = config.scheduler_config
    s.max_num_seqs, s.max_num_batched_tokens = e["max_num_seqs"], e["max_num_batched_tokens"]
    s.enable_chunked_prefill = e.get("enable_chunked_prefill", True)
    s.long_prefill_token_threshold = e.get("long_prefill_token_threshold", 0)
    if e.get("long_prefill_token_threshold_adaptive"):
        if not hasattr(s, "long_prefill_token_threshold_adaptive"):
            raise DriverError("this vLLM has no long_prefill_token_threshold_adaptive")
        s.long_prefill_token_threshold_adaptive = True
    s.policy, s.async_scheduling = case.policy, e["async_scheduling"]
    if "reserve_full_sequence" in e:
        if not hasattr(s, "scheduler_reserve_full_isl") and e["reserve_full_sequence"]:
            raise DriverError("this vLLM has no scheduler_reserve_full_isl")
        s.scheduler_reserve_full_isl = e["reserve_full_sequence"]
    for name in "max_num_active_seqs", "prefill_schedule_interval", *door.QUEUED:
        if name in e:
            if not hasattr(s, name):
                raise DriverError(f"this vLLM has no {name}")
            setattr(s, name, e[name])
    c = config.cache_config
    if e.get("watermark"):
        for holder in (c, s):
            if hasattr(holder, "watermark"):
                holder.watermark = e["watermark"]
                break
        else:
            raise DriverError("this vLLM has no watermark")
    c.block_size, c.num_gpu_blocks = e["block_size"], e["num_gpu_blocks_override"]
    c.enable_prefix_caching = e["enable_prefix_caching"]
    c.get_resolved_kv_cache_layout = lambda: types.SimpleNamespace(is_block_outermost=False)
    config.attention_config = types.SimpleNamespace(hisparse_config=None)
    s.disable_hybrid_kv_cache_manager = False
    m = config.model_config
    m.max_model_len, m.runner_type, m.return_sampling_mask = e["max_model_len"], "generate", False
    config.parallel_config.data_parallel_index = 0
    lora.configure(config, e)
    if pipeline.stages_of(e) > 1:
        pipeline.configure(config, e, version_of(directory))
    encoder.configure(config, e)
    if stated := e.get("speculative_config"):
        speculation.configure(directory, config, stated)
    return config


def version_of(directory):
    return tuple(int(n) for n in directory.name.split(".")[:2])


class Plain(types.SimpleNamespace):
    """A configuration of a text model with one kind of attention: no property is_x, has_x, ... of it holds."""

    def __getattr__(self, name):
        if name.startswith(("is_", "has_", "uses_", "supports_")):
            return False
        raise AttributeError(f"the driver's configuration has no {name}")


class Run:
    """One run: the clock, the engine core, and what has happened."""

    def __init__(self, directory, case):
        self.case, self.now, self.busy_until, self.ended = case, 0, 0, 0
        self.spec, self.scheduled = case.engine.get("speculative_config"), None
        self.stated = {r.id: r for r in case.requests}
        self.lora, self.adapters = case.engine.get("max_loras") and lora.Adapters(case.engine), {}
        self.config = configuration(directory, case)
        self.stages, self.formed = None, 0
        if pipeline.stages_of(case.engine) > 1:
            self.stages = pipeline.Pipeline(case.engine, version_of(directory), cases.LAYERS)
        self.tokens = {}  # (segment, position) -> token id
        self.requests, self.results = {}, {}
        self.steps, self.preemptions = [], []
        self.victims = []  # of batches without tokens, which are no steps
        self.waiting_since = {}
        self.grammars = grammar.Manager(self)
        self.core = self.engine_core(directory)
        self.door = door.Door(directory, case) if any(name in case.engine for name in door.QUEUED) else None
        inputs = [(r.enqueued_us, 0, r) for r in case.requests]
        inputs += [(r.deadline_us, 1, r) for r in case.requests if r.deadline_us is not None]
        self.inputs = collections.deque(sorted(inputs, key=lambda x: (x[0], x[1], x[2].position)))

    def engine_core(self, directory):
        from vllm.sampling_params import SamplingParams
        from vllm.utils.hashing import get_hash_fn_by_name
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
        from vllm.v1.core.sched.async_scheduler import AsyncScheduler
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.engine import core
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.outputs import ModelRunnerOutput
        from vllm.v1.request import Request
        self.SamplingParams, self.Request, self.ModelRunnerOutput = SamplingParams, Request, ModelRunnerOutput
        e = self.case.engine
        if models.has_states(model := models.config_of(self.case)):
            cache, cached = self.config.cache_config, e["enable_prefix_caching"]
            cache.mamba_cache_mode = "align" if cached else "none"
            checkpoints = models.checkpoint_blocks(directory, model)
            cache.block_size = models.state_block(model, e["block_size"], checkpoints, cached)
            groups = models.groups(model, self.config, cache.block_size, checkpoints)
        elif model:
            groups = models.groups(model, self.config, e["block_size"])
        else:
            spec = FullAttentionSpec(block_size=e["block_size"], num_kv_heads=1, head_size=1, dtype=None)
            groups = [KVCacheGroupSpec(["layer"], spec)]
        kv = KVCacheConfig(**accepted((KVCacheConfig,), dict(
            num_blocks=e["num_gpu_blocks_override"], kv_cache_tensors=[], kv_cache_groups=groups,
            prefix_cache_retention_interval=getattr(self.config.cache_config, "prefix_cache_retention_interval", None))))
        sizes = [g.kv_cache_spec.block_size for g in groups]
        block_size, hash_size = math.lcm(*sizes), math.gcd(*sizes)  # resolve_kv_cache_block_sizes
        if not e["enable_prefix_caching"]:
            hash_size = block_size
        if "hash_block_size" not in parameters((Scheduler,)):  # then the scheduler gets the size of the configuration
            block_size = hash_size = self.config.cache_config.block_size
        self.block_hasher = None
        if e["enable_prefix_caching"]:
            hash_function = get_hash_fn_by_name("sha256")
            init_none_hash(hash_function)
            ahead = [self.config.num_hash_lookahead_tokens] if self.spec else []
            self.block_hasher = get_request_block_hasher(hash_size, hash_function, *ahead)
        scheduler = (AsyncScheduler if e["async_scheduling"] else Scheduler)(**accepted((AsyncScheduler, Scheduler), dict(
            vllm_config=self.config, kv_cache_config=kv, block_size=block_size, hash_block_size=hash_size,
            structured_output_manager=self.grammars,
            mm_registry=types.SimpleNamespace(supports_multimodal_inputs=lambda _: False))))
        scheduler.kv_event_publisher, scheduler.finished_req_ids = None, Ordered()
        self.worker = None
        if self.case.tiers or self.case.pool:
            connector = multi if self.case.tiers and self.case.pool else offload if self.case.tiers else nixl
            self.worker = connector.attach(self.case, scheduler, self.config, kv)
        preempt = scheduler._preempt_request
        scheduler._preempt_request = lambda q, *rest, **named: (self.preempted(q), preempt(q, *rest, **named))
        schedule = scheduler.schedule
        scheduler.schedule = lambda *rest: self.schedule(schedule, *rest)
        engine = object.__new__(core.EngineCore)
        engine.vllm_config, engine.scheduler, engine.model_executor = self.config, scheduler, self
        engine.batch_queue_size = size = self.config.max_concurrent_batches
        engine.batch_queue = collections.deque(maxlen=size) if size > 1 else None
        engine.use_spec_decode, engine.is_pooling_model, engine.is_ec_producer = False, False, False
        engine.log_stats, engine.is_ec_consumer, engine.async_scheduling = False, True, e["async_scheduling"]
        engine.is_mm_encoder_only, engine._weight_version, engine.check_for_draft_tokens = False, None, bool(self.spec)
        engine.aborts_queue = queue.Queue()
        engine.step_fn = engine.step_with_batch_queue if size > 1 else engine.step
        # vLLM frees the blocks of requests that are aborted together in the order of a set of strings,
        # which is random. Here it is the order of the aborts.
        abort = engine.abort_requests
        engine.abort_requests = lambda ids: [abort([i]) for i in ids]
        return engine

    def play(self):
        scheduler, idle = self.core.scheduler, 0
        while True:
            self.deliver(self.now + 1)
            if not scheduler.has_requests() and not self.core.batch_queue:
                if not self.inputs:
                    break
                self.now = self.inputs[0][0]
                continue
            before = self.now, len(self.steps)
            outputs, executed = self.core.step_fn()
            if self.spec:
                self.core.post_step(executed)
            self.emit(outputs or {})
            idle = idle + 1 if before == (self.now, len(self.steps)) else 0
            if idle > 3 and self.worker and self.skip_to_transfer():
                idle = 0
            elif idle > 3 and self.skip_to_grammar():
                idle = 0
            elif idle > 3 and self.case.pool and not self.inputs and self.worker.next_end() is None:
                break  # the run of BLIS ends before the transfers that are left
            if idle > 1000:
                raise DriverError(f"vLLM's scheduler makes no progress at {self.now} µs: running "
                                  f"{[r.request_id for r in scheduler.running]}, {len(scheduler.requests)} requests")
        transfers = self.worker.transfers if self.worker else []
        return {"steps": self.steps, "preemptions": self.preemptions, "requests": self.results, "transfers": transfers}

    def skip_to_transfer(self):
        """Moves the clock to the next end of a transfer or the next input, if all requests wait for transfers."""
        if any(output.num_scheduled_tokens for _, output, _ in self.core.batch_queue or ()):
            return False
        times = [t for t in [self.worker.next_end(), self.inputs[0][0] if self.inputs else None] if t is not None]
        if not times or min(times) <= self.now:
            return False
        self.now = min(times)
        return True

    def skip_to_grammar(self):
        """Moves the clock to the time at which the next grammar is compiled or the next input, if all requests wait for
        their grammars."""
        at = self.grammars.next_ready()
        if at is None or self.core.scheduler.running:
            return False
        self.now = min([at, *(self.inputs[0][0] for _ in self.inputs if self.inputs[0][0] > self.now)])
        return True

    def deliver(self, until):
        """Hands the inputs before a time to the engine core."""
        while self.inputs and self.inputs[0][0] < until:
            at, is_abort, r = self.inputs.popleft()
            if is_abort:
                self.abort(r, at)
                self.core._process_aborts_queue()
            elif r.id not in self.results:
                self.add(r)
            elif r.grammar and self.results[r.id]["state"] == "timed_out":
                # Aborted during the step in which it came. Its grammar is compiled as soon as it comes (preprocess_add_request).
                self.grammars.submit(r.grammar, r.enqueued_us)

    def advance_door(self, until):
        """Lets the server check requests until a time."""
        if self.door:
            self.door.advance(until)
            for name, (at, reason) in self.door.rejected.items():
                self.results.setdefault(name, {**result_of(self.stated[name]), "state": f"rejected {reason}", "ended_us": at})

    def add(self, r):
        self.advance_door(r.enqueued_us)
        if r.id in self.results:
            return
        # Real arrival times are never equal. Requests of the same µs arrive in the order of the workload.
        arrival = r.enqueued_us / 1e6 + r.position / 1e9
        extra = {"extra_args": {"kv_transfer_params": nixl.parameters(self.case, r.id)}} if self.case.pool else {}
        eos, most = None, r.output_tokens
        if r.eos:  # the last token ends the output before the length of the model does
            eos, most = self.token(f"{r.id}.out", r.output_tokens - 1), self.case.engine["max_model_len"] - r.input_tokens
        sampling = self.SamplingParams(max_tokens=most, ignore_eos=not r.eos, **extra)
        sampling._eos_token_id = eos  # of the request since 0.16
        if r.grammar:
            from vllm.sampling_params import StructuredOutputsParams
            sampling.structured_outputs = object.__new__(StructuredOutputsParams)  # a dataclass of pydantic, without its code
            sampling.structured_outputs.grammar = r.grammar
        q = self.requests[r.id] = self.Request(**accepted((self.Request,), dict(
            request_id=r.id, prompt_token_ids=self.prompt(r), arrival_time=arrival, priority=-r.priority,
            sampling_params=sampling, pooling_params=None, eos_token_id=eos,
            lora_request=lora.request(self.adapters, r.adapter), mm_features=encoder.features(r.prompt), block_hasher=self.block_hasher)))
        self.results[r.id] = result_of(r)
        if r.grammar:
            q.structured_output_request.grammar = self.grammars.submit(r.grammar, r.enqueued_us)
        self.hand_over(q)

    def hand_over(self, q):
        self.core.scheduler.add_request(q)

    def abort(self, r, at):
        self.advance_door(at)
        if self.door:
            self.door.end(r.id)
        result = self.results.setdefault(r.id, result_of(r))
        if result["state"] != "unfinished":
            return
        result["state"], result["ended_us"] = "timed_out", at
        self.end_preemption(r.id, at)
        if r.id in self.requests:
            self.core.aborts_queue.put([r.id])

    def prompt(self, r):
        # All images have the same placeholder token.
        segments = [("placeholder" if "media" in s else s["id"], s["tokens"]) for s in r.prompt]
        segments.append((f"{r.id}.rest", r.input_tokens - sum(n for _, n in segments)))
        return [self.token(name, 0 if name == "placeholder" else i) for name, n in segments for i in range(n)]

    def token(self, segment, position):
        return self.tokens.setdefault((segment, position), len(self.tokens))

    def preempted(self, request):
        self.victims.append(request.request_id)
        self.preemptions.append([self.now, request.request_id])
        self.results[request.request_id]["preemptions"] += 1
        self.waiting_since[request.request_id] = self.now

    def end_preemption(self, name, at):
        if name in self.waiting_since:
            self.results[name]["preempted_us"] += at - self.waiting_since.pop(name)

    def schedule(self, schedule, *rest):
        """Calls the scheduler and computes what the batch is: a decode token is the one token that a
        sequence with output has not computed, counting the token that a step in flight will produce."""
        scheduler = self.core.scheduler
        known = {name: (q.num_tokens + q.num_output_placeholders, q.num_output_tokens + q.num_output_placeholders)
                 for name, q in scheduler.requests.items()}
        output = schedule(*rest)
        self.formed += 1
        scheduler.finished_req_ids = Ordered()
        batch = types.SimpleNamespace(prefill=0, decode=0, context=0, drafts=0, sampled={}, verified={})
        admitted = {r.req_id for r in output.scheduled_new_reqs}
        for name, n in output.num_scheduled_tokens.items():
            q, result = scheduler.requests[name], self.results[name]
            tokens, generated = known[name]
            computed = q.num_computed_tokens - n
            drafts = len(output.scheduled_spec_decode_tokens.get(name, ()))
            batch.drafts += drafts
            n -= drafts
            if "scheduled_us" not in result:
                result["scheduled_us"], result["cached_tokens"] = self.now, computed
            self.end_preemption(name, self.now)
            if (generated > 0 or name in self.case.remote) and tokens - computed == 1:
                batch.decode += 1
                batch.context += computed
            else:
                batch.prefill += n
            if computed + n == tokens:
                batch.sampled[name] = self.token(f"{name}.out", generated)
                batch.verified[name] = 0 if name in admitted else drafts  # those of admitted requests are padding
        output.batch = batch
        return output

    def wait(self, end):
        """Waits for a batch. Requests arrive and are aborted meanwhile; the engine core sees the aborts
        before the batch's output and the arrivals after it."""
        arrivals, end = [], max(end, self.now)  # the host may come later
        while self.inputs and self.inputs[0][0] < end:
            at, is_abort, r = self.inputs.popleft()
            if is_abort:
                self.abort(r, at)
            else:
                arrivals.append((at, is_abort, r))
        self.inputs.extendleft(reversed(arrivals))
        self.now = end

    # The executor's side of EngineCore.

    def execute_model(self, output, non_block=False):
        self.last = Pending(self, output, self.start(output))
        return self.last if non_block else self.last.result()

    def sample_tokens(self, _, non_block=False):
        return self.last if non_block else self.last.result()

    def extend(self, end):
        """Makes the batch that was started last end at a time at the earliest."""
        self.last.end = self.busy_until = max(self.last.end, end)
        self.steps[-1]["end_us"] = self.busy_until

    def tokens_of(self, name, batch):
        """The tokens that a step gives a request."""
        q = self.requests.get(name)
        if not self.spec or q is None:
            return [batch.sampled[name]]
        n = speculation.accepted(self.spec, self.stated[name], q.num_output_tokens, batch.verified[name])
        return [self.token(f"{name}.out", q.num_output_tokens + i) for i in range(n + 1)]

    def take_draft_token_ids(self):
        return speculation.drafts_of(self.scheduled)

    def start(self, output):
        """Starts the batch after the one in flight and returns when it ends."""
        meta, begin = output.kv_connector_metadata, max(self.now, self.busy_until)
        if self.worker:
            begin = self.worker.start(meta, self.now, begin)
        if not output.num_scheduled_tokens:
            if self.worker:  # the batch after an empty one is formed at once, and its step waits for the stores of both
                self.worker.store(meta, self.now)
                self.busy_until = begin
            return self.now
        b, pool, scheduler = output.batch, self.core.scheduler.kv_cache_manager.block_pool, self.core.scheduler
        start = begin
        us = self.case.step_us(b.prefill + b.drafts, b.decode, b.context)
        if self.lora:
            names = (self.stated[name].adapter for name in output.num_scheduled_tokens)
            us = self.lora.step_us(us, list(dict.fromkeys(name for name in names if name)))
        if output.scheduled_encoder_inputs:
            us += encoder.step_us(self.case.engine, self.requests, output.scheduled_encoder_inputs)
        self.busy_until = start + us
        if self.stages:
            start, self.busy_until = self.stages.place(self.formed, self.now, us, b.prefill + b.decode, bool(b.sampled))
        if self.spec:
            proposals = 0 if output.skip_drafts else output.num_spec_tokens_to_schedule
            self.busy_until += speculation.draft_us(self.spec, proposals, len(output.num_scheduled_tokens))
        if self.worker:
            self.worker.store(meta, self.busy_until)
        running, waiting = scheduler.get_request_counts()
        self.steps.append({
            "start_us": start, "end_us": self.busy_until, "prefill_tokens": b.prefill, "decode_tokens": b.decode,
            "running": running, "waiting": waiting,
            "used_blocks": pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),  # without the null block
            "preempted": len(self.victims),
            "batch": [list(x) for x in output.num_scheduled_tokens.items()]})
        self.victims = []
        return self.busy_until

    def emit(self, outputs):
        """Records the tokens that appear now."""
        self.advance_door(self.now)
        for output in (o for client in outputs.values() for o in client.outputs):
            result = self.results[output.request_id]
            result["tokens_us"] += [self.now] * len(output.new_token_ids)
            result["generated_tokens"] += len(output.new_token_ids)
            if self.door and result["state"] == "unfinished":
                self.door.output(output.request_id, output.finish_reason is not None)
            if output.finish_reason is not None:
                result["state"] = "completed"
                self.end_preemption(output.request_id, self.ended)


class Ordered(dict):
    """A set in the order in which its elements were added. vLLM uses a set of strings, whose order is random."""

    def add(self, element):
        self[element] = None


class Pending:
    """The future of a batch. Waiting for it moves the clock to its end."""

    def __init__(self, run, output, end):
        self.run, self.output, self.end = run, output, end

    def done(self):
        return self.run.now >= self.end

    def result(self):
        run = self.run
        run.wait(self.end)
        run.ended = run.now  # the host may fill masks before clients get the tokens
        if self.output.num_scheduled_tokens:
            run.scheduled = self.output  # its drafts are those that the worker has
        names = list(self.output.num_scheduled_tokens)
        sampled = self.output.batch.sampled
        values = dict(req_ids=names, req_id_to_index={n: i for i, n in enumerate(names)},
                      sampled_token_ids=[run.tokens_of(n, self.output.batch) if n in sampled else [] for n in names],
                      logprobs=None, prompt_logprobs_dict={}, pooler_output=[])
        if run.worker:
            values["kv_connector_output"] = run.worker.ended(run.now)
        return run.ModelRunnerOutput(**accepted((run.ModelRunnerOutput,), values))


def result_of(r):
    return {"state": "unfinished", "enqueued_us": r.enqueued_us, "generated_tokens": 0, "cached_tokens": 0,
            "preemptions": 0, "preempted_us": 0, "tokens_us": []}


def accepted(types_, values):
    """The values that one of the types' constructors takes."""
    names = parameters(types_)
    return {k: v for k, v in values.items() if k in names}


@functools.cache
def parameters(types_):
    return {p for t in types_ for p in inspect.signature(t.__init__).parameters}
