"""vLLM's MultiConnector with the NixlConnector and, behind it, the OffloadingConnector, without their workers."""

import nixl
import offload


class Worker:
    """The workers of both connectors."""

    def __init__(self, *workers):
        self.workers = workers

    @property
    def transfers(self):
        return [t for w in self.workers for t in w.transfers]

    def start(self, meta, now, begin):
        for w, m in zip(self.workers, meta.metadata):
            begin = max(begin, w.start(m, now, begin))
        return begin

    def store(self, meta, end):
        for w, m in zip(self.workers, meta.metadata):
            w.store(m, end)

    def ended(self, now):
        from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import MultiKVConnectorWorkerMetadata
        from vllm.v1.outputs import KVConnectorOutput
        pulled, loaded = (w.ended(now) for w in self.workers)
        received = dict.fromkeys([*(pulled.finished_recving or ()), *(loaded.finished_recving or ())])
        return KVConnectorOutput(
            finished_sending=pulled.finished_sending, finished_recving=received,
            kv_connector_worker_meta=MultiKVConnectorWorkerMetadata((None, loaded.kv_connector_worker_meta)))

    def next_end(self):
        return min((end for w in self.workers if (end := w.next_end()) is not None), default=None)


def attach(case, scheduler, config, kv_cache_config):
    """Gives the scheduler of a pool both connectors, and returns their worker."""
    from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import MultiConnector
    workers, connectors = [], []
    for one in nixl, offload:
        workers.append(one.attach(case, scheduler, config, kv_cache_config))
        connectors.append(scheduler.connector)

    class Both(MultiConnector):
        """MultiConnector in the role of the scheduler, for connectors that exist."""

        def __init__(self):
            self._connectors, self._requests_to_connector, self._extra_async_saves = connectors, {}, {}
            self._all_support_hma = False

    scheduler.connector = Both()
    return Worker(*workers)
