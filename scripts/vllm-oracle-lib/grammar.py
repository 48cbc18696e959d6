"""Structured output: when the grammars of a case are compiled, and how long the host fills masks."""

import concurrent.futures
import math
import types

THRESHOLD, GROUP, WORKERS = 128, 16, 8  # of StructuredOutputManager


class Manager:
    """StructuredOutputManager, whose backends compile and fill nothing here: both take the times of the case. All tokens
    follow all grammars."""

    def __init__(self, run):
        self.run, engine = run, run.case.engine
        self.compile_us, self.mask_us = engine.get("grammar_compile_us", 0), engine.get("grammar_mask_us", 0)
        self.sampling_us = engine.get("sampling_us", 1)
        self.workers = [0] * engine.get("grammar_workers", 1)  # when each is free
        self.compiled = {}  # when

    def submit(self, name, now):
        """The future of a grammar that is handed to the pool of threads now. The backend has one compilation of each."""
        worker = min(range(len(self.workers)), key=lambda i: self.workers[i])
        start = max(now, self.workers[worker])
        ready = max(start, self.compiled.setdefault(name, start + self.compile_us))
        self.workers[worker] = ready
        return Grammar(self.run, ready)

    def next_ready(self):
        """When the next grammar is compiled, or None."""
        return min((t for t in self.workers + list(self.compiled.values()) if t > self.run.now), default=None)

    def grammar_bitmask(self, _, names, drafts):
        """Fills the masks of the batch that was handed to the executor last, which then samples."""
        if self.run.spec:
            rows = sum(1 + leading(drafts.get(name, [])) for name in names)
        else:
            rows = in_groups(len(names)) if len(names) > THRESHOLD else len(names)
        self.run.now += math.floor(rows * self.mask_us + 0.5)
        self.run.extend(self.run.now + self.sampling_us)

    def validate_tokens(self, _, tokens):
        return tokens

    def accept_tokens(self, *_):
        return True

    def should_advance(self, *_, **__):
        return False


class Grammar(concurrent.futures.Future):
    """The future of a grammar, which is done at a time of the run."""

    def __init__(self, run, ready):
        super().__init__()
        self.run, self.ready = run, ready

    def done(self):
        return self.run.now >= self.ready

    def result(self, timeout=None):
        return types.SimpleNamespace()


def leading(tokens):
    """How many drafts come before the padding."""
    return next((i for i, t in enumerate(tokens) if t == -1), len(tokens))


def in_groups(n):
    """How long the workers take for n masks in groups, in times of a mask."""
    busy = [0] * WORKERS
    for left in range(n, 0, -GROUP):
        busy[busy.index(min(busy))] += min(GROUP, left)
    return max(busy)


def random_grammars(rng, engine, requests, beta):
    """Grammars for the requests of a case, with times that are fractions or multiples of that of a step."""
    engine.update(grammar_compile_us=round(beta[0] * rng.choice([0, 0.2, 1, 5, 30])), grammar_workers=rng.choice([1, 1, 2, 5]),
                  grammar_mask_us=rng.choice([0, 8, 0.5, round(beta[0] * rng.choice([0.02, 0.3, 1.5])) + 0.5]),
                  sampling_us=rng.choice([1, 1, round(beta[0] * rng.choice([0.1, 0.5, 1.2]))]))
    kinds, share = rng.randint(1, 8), rng.choice([1, 1, 0.6, 0.2])
    for r in requests:
        if rng.random() < share:
            r["grammar"] = f"schema-{min(rng.randrange(kinds), rng.randrange(kinds))}"
