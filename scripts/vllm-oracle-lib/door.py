"""The limits of the API server: vLLM's own check_admission, with what its output processor counts."""

import ast
import collections
import types

QUEUED = "max_num_queued_reqs", "max_num_queued_tokens"


def methods_of(file, name, wanted, names):
    """Methods of a class in a file that cannot be imported, by name. They see nothing but names."""
    (node,) = (n for n in ast.parse(file.read_text()).body if isinstance(n, ast.ClassDef) and n.name == name)
    found = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in wanted]
    if len(found) != len(wanted):
        raise AttributeError(f"{name} has no {wanted}")
    exec(compile(ast.Module(found, []), str(file), "exec"), names)
    return {n: names[n] for n in wanted}


class Rejected(Exception):
    """A request exceeds a limit."""


class QueueOverflowError(Rejected):
    reason = QUEUED[0]


class MaxQueuedTokensError(Rejected):
    reason = QUEUED[1]


class Door:
    """The API server of a replica. It checks each request when it comes and when it is tokenized, before those that end
    or have their first token at this time."""

    def __init__(self, directory, case):
        e = case.engine
        engine = directory / "vllm" / "v1" / "engine"
        log = types.SimpleNamespace(debug=lambda *_: None, info=lambda *_: None)
        counts = "get_num_unfinished_requests", "get_num_queued_tokens"
        self.states = {}  # what the output processor knows of requests that are not finished
        processor = types.SimpleNamespace(request_states=self.states)
        for name, method in methods_of(engine / "output_processor.py", "OutputProcessor", counts, {}).items():
            setattr(processor, name, types.MethodType(method, processor))
        self.server = types.SimpleNamespace(
            scheduler_config=types.SimpleNamespace(**{name: e.get(name) for name in QUEUED}), admission_stats=None,
            output_processor=processor, _record_admission_rejection=lambda _: None)
        names = {"logger": log, "QueueOverflowError": QueueOverflowError,
                 "MaxQueuedTokensError": MaxQueuedTokensError}
        for name, method in methods_of(engine / "async_llm.py", "AsyncLLM", (*counts, "check_admission"), names).items():
            setattr(self.server, name, types.MethodType(method, self.server))
        self.ended, self.rejected = set(), {}
        checks = [(r.arrival_us, 0, r) for r in case.requests] + [(r.enqueued_us, 1, r) for r in case.requests]
        self.checks = collections.deque(sorted(checks, key=lambda x: (x[0], x[1], x[2].position)))

    def advance(self, until):
        """Checks the requests that come or are tokenized until a time."""
        while self.checks and self.checks[0][0] <= until:
            at, tokenized, r = self.checks.popleft()
            if r.id in self.ended:
                continue
            try:
                self.server.check_admission(request_id=r.id)
            except Rejected as err:
                self.rejected[r.id] = at, err.reason
                self.ended.add(r.id)
                continue
            if tokenized:
                self.states[r.id] = types.SimpleNamespace(prompt_len=r.input_tokens, is_prefilling=True)

    def output(self, name, is_last):
        """A request has a token, as in OutputProcessor.process_outputs."""
        self.states[name].is_prefilling = False
        if is_last:
            self.end(name)

    def end(self, name):
        """A request is finished or aborted."""
        self.ended.add(name)
        self.states.pop(name, None)


def random_limits(rng, engine, requests):
    """Limits of a server, some of which are reached."""
    longest = max(r["input_tokens"] for r in requests)
    limit = rng.choice([*QUEUED, "both", "active"])
    if limit in (QUEUED[0], "both"):
        engine[QUEUED[0]] = rng.choice([0, 1, 2, 3, 5, 8, 12])
    if limit in (QUEUED[1], "both"):
        engine[QUEUED[1]] = rng.choice([0, 1, longest, 2 * longest, 4 * longest, rng.randint(1, 3 * longest)])
    if limit == "active" or rng.random() < 0.4:
        engine["max_num_active_seqs"] = rng.randint(1, engine["max_num_seqs"])
