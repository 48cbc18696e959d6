"""vLLM's NixlConnector between a prefill and a decode replica, without its workers.

The scheduler's side of the connector (pull) is vLLM's, on both replicas. The workers are not: a transfer ends when BLIS
says, and vLLM learns of it with the output of the next batch. Each scheduler runs by itself, with the times at which the
other side acts as BLIS has them: prompts that a prefill replica has computed come to the decode replica, and its
transfers free the blocks of the other one. If all times are equal then, each side acts as the other one expects.
"""

import types

REMOTE = {"remote_engine_id": "prefill", "remote_host": "host", "remote_port": 1, "tp_size": 1}


class Worker:
    """What the worker of a replica does: transfers of the blocks of requests that end at given times."""

    def __init__(self, case, connector):
        self.ends, self.sends, self.connector = case.transfer_ends, case.pool == "prefill", connector
        self.under_way, self.transfers = {}, []

    def start(self, meta, now, begin):
        """Starts the transfers of a batch formed now."""
        for name in meta.reqs_to_send:
            self.under_way[name] = self.ends.get(name)
        for name, x in meta.reqs_to_recv.items():
            if x.awaiting_kvs:
                self.under_way[name] = self.ends.get(name)
                self.transfers.append(["pd", name, sum(len(group) for group in x.local_block_ids), now, now, self.ends.get(name)])
        return begin

    def store(self, _, __):
        """There is no tier."""

    def ended(self, now):
        """What has ended, for the output of a batch."""
        from vllm.v1.outputs import KVConnectorOutput
        ended = [name for name, end in self.under_way.items() if end is not None and end <= now]
        done = dict.fromkeys(sorted(ended, key=self.under_way.get))  # vLLM has a set of strings, whose order is random
        for name in done:
            del self.under_way[name]
        return KVConnectorOutput(**{"finished_sending" if self.sends else "finished_recving": done})

    def next_end(self):
        return min((end for end in self.under_way.values() if end is not None), default=None)


class Connector:
    """NixlConnector for one KV cache group, in the role of the scheduler."""

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

    def take_events(self):
        return ()

    def request_finished(self, request, blocks):
        return self.scheduler.request_finished(request, (blocks,))


def attach(case, scheduler, config, kv_cache_config):
    """Gives the scheduler of a pool a connector, and returns its worker."""
    from vllm.distributed.kv_transfer.kv_connector.v1.nixl.pull_scheduler import NixlPullConnectorScheduler
    config.parallel_config.tensor_parallel_size = config.parallel_config.pipeline_parallel_size = 1
    config.parallel_config.decode_context_parallel_size = 1
    config.kv_transfer_config = types.SimpleNamespace(kv_buffer_device="cuda", is_kv_producer=False,
                                                      get_from_extra_config=lambda _, default: default)
    side = NixlPullConnectorScheduler(config, case.pool, kv_cache_config)
    config.kv_transfer_config = None
    scheduler.connector = Connector(side)
    scheduler.defer_block_free = config.max_concurrent_batches > 1  # the connector also consumes
    return Worker(case, side)


def parameters(case, name):
    """kv_transfer_params of a request, None for one that the decode replica computes alone."""
    if case.pool == "prefill":
        return {"do_remote_decode": True}
    if name in case.remote:
        return {"do_remote_prefill": True, "remote_block_ids": ([1],), "remote_request_id": name, **REMOTE}
    return None
