"""vLLM's OffloadingConnector with a CPU tier, without its worker.

The scheduler's side of the connector, the CPU manager and its policies are vLLM's. The worker is not: a transfer ends
when the link of the case has run it. A load is asked for when its batch is formed, a store at the end of the step that
fills its blocks, as in BLIS. vLLM learns of an end with the output of the next batch, since its scheduler does not run
between two batches.
"""

import math
import types


class Link:
    """A link that runs one transfer at a time."""

    def __init__(self, speed):
        self.latency, self.rate, self.free = speed.get("latency_us", 0), speed["gb_per_s"], 0

    def ask(self, now, size):
        start = max(now, self.free)
        self.free = start + max(1, math.ceil(self.latency + size / (1000 * self.rate)))
        return start, self.free


class Worker:
    """What the workers do: transfers, in the order in which the scheduler asks for them."""

    def __init__(self, case, scheduler, connector):
        (tier,) = case.tiers
        self.scheduler, self.connector = scheduler, connector
        self.links = {"load": Link(tier["load"]), "store": Link(tier["store"])}
        self.block_bytes = case.engine["kv_bytes_per_block"]
        self.under_way, self.transfers = {}, []

    def ask(self, kind, job_id, job, now):
        blocks = len(self.connector._jobs[job_id].keys)
        start, end = self.links[kind].ask(now, blocks * self.block_bytes)
        self.under_way[job_id] = end, job.req_id if kind == "load" else None
        self.transfers.append([kind, job.req_id, blocks, now, start, end])
        return end

    def start(self, meta, now, begin):
        """Starts the loads of a batch formed now. Returns when its step can begin, which begin would allow earlier."""
        for job_id, job in meta.load_jobs.items():
            self.ask("load", job_id, job, now)
        for job_id in meta.jobs_to_flush or ():
            if job_id in meta.store_jobs:  # of a request that has ended, whose blocks the batch takes
                self.ask("store", job_id, meta.store_jobs.pop(job_id), now)
            begin = max(begin, self.under_way.get(job_id, (0,))[0])
        return begin

    def store(self, meta, end):
        """Starts the stores of a batch whose step ends at end."""
        for job_id, job in meta.store_jobs.items():
            self.ask("store", job_id, job, end)

    def ended(self, now):
        """What has ended, for the output of a batch."""
        from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
        from vllm.v1.outputs import KVConnectorOutput
        jobs = [j for j, (end, _) in self.under_way.items() if end <= now]
        meta, loaded = OffloadingWorkerMetadata(), set()
        for j in jobs:
            meta.mark_completed(j)
            _, request = self.under_way.pop(j)
            if request is not None:
                loaded.add(request)
        return KVConnectorOutput(finished_recving=loaded, kv_connector_worker_meta=meta)

    def next_end(self):
        return min((end for end, _ in self.under_way.values()), default=None)


class Connector:
    """OffloadingConnector for one KV cache group, in the role of the scheduler."""

    requires_kv_delivery = supports_divergent_local_hybrid_hits = False

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def __getattr__(self, name):
        return getattr(self.scheduler, name)

    def has_pending_block_frees(self):
        return False

    def get_loaded_kv_cache_group_ids(self, _):
        return (0,)

    def get_kv_connector_stats(self):
        return None

    def request_finished(self, request, _):
        return self.scheduler.request_finished(request)


class NoStats:
    """Statistics that are not read."""

    def __getattr__(self, _):
        return lambda *_, **__: None


def attach(case, scheduler, config, kv_cache_config):
    """Gives the scheduler a connector with the tier of the case, and returns its worker."""
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading import scheduler as offloading
    from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager
    size = case.engine["block_size"]
    (tier,) = case.tiers
    group = types.SimpleNamespace(group_id=0, tokens_per_block=size, sliding_window_size_in_chunks=None)
    spec = types.SimpleNamespace(
        config=types.SimpleNamespace(groups=[group]), blocks_per_chunk=1, tokens_per_hash=size, tokens_per_block=[size],
        offload_prompt_only=False, extra_config={}, kv_events_config=types.SimpleNamespace(enable_kv_cache_events=False, self_describing_kv_events=False),
        get_manager=lambda: CPUOffloadingManager(tier["blocks"], case.offload.get("eviction", "lru")))
    config.parallel_config.world_size = config.parallel_config.decode_context_parallel_size = 1
    offloading._group_kv_bytes_per_block = lambda _: size  # only for synchronous loads, which are off
    offloading.OffloadingConnectorStats = NoStats
    side = offloading.OffloadingConnectorScheduler(spec, config, kv_cache_config)
    scheduler.connector = Connector(side)
    scheduler.defer_block_free = config.max_concurrent_batches > 1  # the connector also consumes
    return Worker(case, scheduler, side)
