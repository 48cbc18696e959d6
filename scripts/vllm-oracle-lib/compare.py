"""Compares what vLLM and BLIS did with a case."""

# batch has the requests in the order in which they were scheduled, with their tokens.
STEP = ["start_us", "end_us", "prefill_tokens", "decode_tokens", "running", "waiting", "used_blocks", "preempted", "batch"]
REQUEST = ["state", "enqueued_us", "scheduled_us", "first_token_us", "completed_us", "ended_us", "generated_tokens",
           "cached_tokens", "preemptions", "preempted_us", "itl_us"]


def expected(case, run, until=None):
    """What vLLM did, in the fields of BLIS's records, until the end of BLIS's run where that is later for one pool."""
    delay, requests = case.client_delay_us(), {}
    for name, r in run["requests"].items():
        tokens = r["tokens_us"]
        o = {k: v for k, v in r.items() if k in REQUEST and (v or k != "preempted_us")}
        if tokens:
            o["first_token_us"] = tokens[0] + delay
        if r["state"] == "completed":
            o["completed_us"] = tokens[-1] + delay
        if gaps := run_lengths(b - a for a, b in zip(tokens, tokens[1:])):
            o["itl_us"] = gaps
        if o.get("ended_us", o["enqueued_us"]) < o["enqueued_us"] or r["state"].startswith("rejected"):
            del o["enqueued_us"]
        requests[name] = o
    # BLIS's run ends with the last request: a step that then computes only aborted ones has no record.
    last = until if until is not None else max([r.get("ended_us", 0) for r in run["requests"].values()] + [t for r in run["requests"].values() for t in r["tokens_us"]])
    steps = [s for s in run["steps"] if s["end_us"] <= last]
    transfers = [t for t in run["transfers"] if t[-1] is not None and t[-1] <= last]
    return {"steps": steps, "preemptions": run["preemptions"], "requests": requests, "transfers": transfers}


def run_lengths(gaps):
    lengths = []
    for gap in gaps:
        if lengths and lengths[-1][0] == gap:
            lengths[-1][1] += 1
        else:
            lengths.append([gap, 1])
    return lengths


class Difference:
    """The first difference of a case: where, and what each did."""

    def __init__(self, where, rows, context=()):
        self.where, self.rows, self.context = where, rows, list(context)

    def __str__(self):
        lines = [f"  {self.where}", f"    {'':18} {'vLLM':>24} {'BLIS':>24}"]
        lines += [f"    {field:18} {show(v):>24} {show(b):>24}" for field, v, b in self.rows]
        return "\n".join(lines + [f"    {line}" for line in self.context])

    def fields(self):
        return ", ".join(field for field, _, _ in self.rows)


def show(value):
    return "-" if value is None else str(value)


def first_difference(want, got, ignored=()):
    """The first difference: of a step, else of a preemption, else of a request."""
    step = [f for f in STEP if f not in ignored]
    request = [f for f in REQUEST if f not in ignored]
    for i, (v, b) in enumerate(zip(want["steps"], got["steps"])):
        rows = [(f, v[f], b[f]) for f in step if v[f] != b[f]]
        if rows:
            return Difference(f"step {i}, {v['start_us']} to {v['end_us']} µs", rows, around(want, got, i))
    if preemption := first_preemption(want, got):
        return preemption
    for kind in "load", "store", "pd":
        v, b = ([t for t in run["transfers"] if t[0] == kind] for run in (want, got))
        if kind == "pd":  # those at one time may end in any order
            v, b = (sorted(list_, key=lambda t: (t[3], t[1])) for list_ in (v, b))
        for i in range(max(len(v), len(b))):
            x, y = v[i] if i < len(v) else None, b[i] if i < len(b) else None
            if x != y:
                return Difference(f"{kind} {i}", [("transfer", x, y)])
    for name in sorted(want["requests"].keys() | got["requests"].keys()):
        v, b = want["requests"].get(name, {}), got["requests"].get(name, {})
        rows = [(f, v.get(f), b.get(f)) for f in request if v.get(f) != b.get(f)]
        if rows:
            return Difference(f"request {name}", rows)
    if len(want["steps"]) != len(got["steps"]):
        return Difference("end of the run", [("steps", len(want["steps"]), len(got["steps"]))])
    return None


def first_preemption(want, got):
    v, b = want["preemptions"], got["preemptions"]
    for i in range(max(len(v), len(b))):
        x, y = v[i] if i < len(v) else None, b[i] if i < len(b) else None
        if x != y:
            return Difference(f"preemption {i}", [("time, request", x, y)])
    return None


def around(want, got, i):
    """What one needs to understand a difference in step i: the batches of vLLM and the preemptions."""
    steps, lines = want["steps"], []
    for k in range(max(0, i - 1), i + 1):
        lines.append(f"vLLM's batch of step {k}: " + ", ".join(f"{n} {t}" for n, t in steps[k]["batch"]))
    until = steps[i]["end_us"]
    for who, run in ("vLLM", want), ("BLIS", got):
        if recent := [p for p in run["preemptions"] if p[0] <= until][-4:]:
            lines.append(f"{who}'s last preemptions: " + ", ".join(f"{n} at {t}" for t, n in recent))
        since = steps[max(0, i - 1)]["start_us"]
        ended = [f"{n} {r['state']}" for n, r in run["requests"].items()
                 if since <= (r.get("completed_us") or r.get("ended_us") or -1) <= until]
        if ended:
            lines.append(f"{who}'s requests that ended about then: " + ", ".join(ended))
    return lines
