"""Data-parallel ranks in lockstep: an engine core for each, which all run DPEngineCoreProc's own loop on one clock.

The collective operations are not vLLM's: a step begins when all ranks have handed their batch of it, or a dummy batch, to
the executor, and takes as long as that of the slowest; an all-reduce takes no time. So does the coordinator, which hands
START_DP_WAVE from one rank to the others. Each rank runs in a thread, of which one runs at a time."""

import copy
import queue
import threading
import types

import driver
import speculation


def ranks_of(engine):
    return engine.get("data_parallel_size", 1)


def random_ranks(rng, engine):
    """Ranks for a case."""
    engine.get("speculative_config", {}).pop("num_speculative_tokens_per_batch_size", None)  # vLLM refuses it
    engine["data_parallel_size"] = rng.choice([2, 2, 3, 4])
    engine["data_parallel_external_lb"] = rng.random() < 0.5
    if rng.random() < 0.6:
        engine["dp_sync_interval"] = rng.choice([1, 2, 4, 7])
    if rng.random() < 0.5:
        engine["prefill_schedule_interval"] = rng.choice([2, 2, 3, 5])


def side(case, rank, run):
    """The part of a case that a rank has in a run of BLIS."""
    part = copy.copy(case)
    part.requests = [r for r in case.requests if run["requests"][r.id].get("replica") == rank]
    return part


def part(run, case):
    """What the rank of a side did in a run of BLIS."""
    names = {r.id for r in case.requests}
    return {"steps": [s for s in run["steps"] if any(name in names for name, _ in s["batch"])],
            "preemptions": [p[:2] for p in run["preemptions"] if p[1] in names],
            "requests": {name: r for name, r in run["requests"].items() if name in names}, "transfers": []}


def run(directory, sides):
    """What vLLM does with the requests of each rank."""
    return driver.checked(directory, sides[0], lambda: Server(directory, sides).play())


class Server:
    """The ranks, the clock, and the steps that they run together."""

    def __init__(self, directory, sides):
        self.now, self.stopped, self.error = 0, False, None
        self.steps, self.reduced = [], []
        self.ranks = []
        for i, case in enumerate(sides):
            self.ranks.append(Rank(self, i, directory, case))

    def play(self):
        threads = [threading.Thread(target=r.loop, daemon=True) for r in self.ranks]
        for t in threads:
            t.start()
        self.finished = threading.Semaphore(0)
        self.resume()
        self.finished.acquire()
        for t in threads:
            t.join()
        if self.error:
            raise self.error
        return [{"steps": [s for s in r.steps if s["end_us"] is not None], "preemptions": r.preemptions, "requests": r.results,
                 "transfers": []} for r in self.ranks]

    def resume(self):
        """Lets the rank go on that can first; the last one that ends ends the run."""
        waiting = [(at, r.index) for r in self.ranks if r.ready and (at := r.ready()) is not None]
        if waiting and not self.stopped:
            at, index = min((max(at, self.now), index) for at, index in waiting)
            self.now = at
            self.ranks[index].turn.release()
            return
        self.stopped = True
        for r in self.ranks:
            if r.ready:
                r.turn.release()
                return
        self.finished.release()

    def join(self, rank, us, record):
        """Hands the next batch of a rank to the executor."""
        number, rank.joined = rank.joined, rank.joined + 1
        if number == len(self.steps):
            self.steps.append(types.SimpleNamespace(us=[], records=[], start=0, end=None))
        step = self.steps[number]
        step.us.append(us)
        step.records.append(record)
        step.start = max(step.start, self.now)
        if len(step.us) == len(self.ranks):
            if number > 0:
                step.start = max(step.start, self.steps[number - 1].end)
            step.end = step.start + max(step.us)
            for r in step.records:
                if r:
                    r["start_us"], r["end_us"] = step.start, step.end
        return step


class Stop(BaseException):
    """The end of the run."""


class Rank(driver.Run):
    """One rank: its engine core, and what has happened there."""

    def __init__(self, server, index, directory, case):
        self.server, self.index, self.joined, self.reductions, self.woken = server, index, 0, 0, False
        super().__init__(directory, case)
        self.turn, self.ready, self.is_sleeping = threading.Semaphore(0), lambda: 0, False

    @property
    def now(self):
        return self.server.now

    @now.setter
    def now(self, _):
        pass  # the server has the clock

    def engine_core(self, directory):
        from vllm.v1.engine import core
        self.config.parallel_config.data_parallel_size = ranks_of(self.case.engine)
        plain, e = super().engine_core(directory), self.case.engine
        engine = object.__new__(core.DPEngineCoreProc)
        engine.__dict__.update(plain.__dict__)
        engine.step_fn = engine.step_with_batch_queue if engine.batch_queue is not None else engine.step
        engine.prefill_schedule_interval = self.config.scheduler_config.prefill_schedule_interval
        engine.dp_sync_interval = e.get("dp_sync_interval", self.config.parallel_config.dp_sync_interval)
        engine.step_counter, engine.current_wave, engine.engines_running = 0, 0, False
        engine.pending_pause, engine.ignore_start_dp_wave, engine.eep_scaling_state = False, False, None
        engine.has_coordinator, engine.publish_dp_lb_stats, engine.dp_group = True, False, None
        engine.dp_rank = engine.engine_index = self.index
        engine.output_queue = types.SimpleNamespace(put_nowait=self.put)
        engine._handle_shutdown = lambda: True
        engine._process_input_queue = self.receive
        abort = engine.abort_requests
        engine.abort_requests = lambda ids: [abort([i]) for i in ids]
        self.config.parallel_config.sync_dp_state = self.reduce
        return engine

    def loop(self):
        try:
            self.turn.acquire()
            self.core.run_busy_loop()
        except Stop:
            pass
        except BaseException as err:  # noqa: BLE001: the main thread raises it
            self.server.error, self.server.stopped = self.server.error or err, True
        self.ready = None
        self.server.resume()

    def block(self, ready):
        """Waits until ready gives a time that has come."""
        self.ready = ready
        self.server.resume()
        self.turn.acquire()
        if self.server.stopped:
            raise Stop

    def receive(self):
        """_process_input_queue."""
        self.deliver(self.now + 1)
        while not self.core.has_work():
            self.block(lambda: self.now if self.woken else self.inputs[0][0] if self.inputs else None)
            self.deliver(self.now + 1)
            self.wake()
        self.wake()

    def wake(self):
        if self.woken:
            from vllm.v1.engine import EngineCoreRequestType
            self.core._handle_client_request(EngineCoreRequestType.START_DP_WAVE, self.woken)
            self.woken = None

    def put(self, message):
        client, outputs = message
        if client >= 0:
            self.emit({client: outputs})
        elif outputs.start_wave is not None:
            for r in self.server.ranks:
                if r is not self:
                    r.woken = (outputs.start_wave, self.index)

    def hand_over(self, q):
        self.core.add_request(q, self.core.current_wave)

    def reduce(self, _, has_unfinished, pending_pause):
        """ParallelConfig.sync_dp_state."""
        number, self.reductions = self.reductions, self.reductions + 1
        if number == len(self.server.reduced):
            self.server.reduced.append([])
        votes = self.server.reduced[number]
        votes.append(has_unfinished)
        self.block(lambda: self.now if len(votes) == len(self.server.ranks) else None)
        return any(votes), False

    def execute_dummy_batch(self):
        drafts = self.spec["num_speculative_tokens"] if self.spec else 0
        us = self.case.step_us(drafts, 1, 0) + (speculation.draft_us(self.spec, drafts, 1) if self.spec else 0)
        step = self.server.join(self, us, None)
        self.block(lambda: step.end)

    def start(self, output):
        if not output.num_scheduled_tokens:
            return None
        b, pool, scheduler = output.batch, self.core.scheduler.kv_cache_manager.block_pool, self.core.scheduler
        us = self.case.step_us(b.prefill + b.drafts, b.decode, b.context)
        if self.spec:
            proposals = 0 if output.skip_drafts else output.num_spec_tokens_to_schedule
            us += speculation.draft_us(self.spec, proposals, len(output.num_scheduled_tokens))
        running, waiting = scheduler.get_request_counts()
        self.steps.append({
            "start_us": None, "end_us": None, "prefill_tokens": b.prefill, "decode_tokens": b.decode,
            "running": running, "waiting": waiting,
            "used_blocks": pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),  # without the null block
            "preempted": len(self.victims), "batch": [list(x) for x in output.num_scheduled_tokens.items()]})
        self.victims = []
        return self.server.join(self, us, self.steps[-1])

    def wait(self, step):
        if step:
            self.block(lambda: step.end)
        super().wait(self.now)
