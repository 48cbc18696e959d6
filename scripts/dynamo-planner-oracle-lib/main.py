"""Writes random looks of an auto-scaler with the decisions of Dynamo's planner, as JSON lines.

main.py WHEEL CASES SEED, where WHEEL is the directory of the unpacked wheel.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import math
import pathlib
import random
import sys
import types
from unittest.mock import MagicMock

logging.disable(logging.CRITICAL)
ROOT = pathlib.Path(sys.argv[1])
STUBS = ("aisimulate_core", "dynamo.runtime", "dynamo.llm", "dynamo.planner.environment", "dynamo.prometheus_names", "google", "grpc", "kubernetes",
         "pandas", "pmdarima", "prometheus_api_client", "prometheus_client", "prophet", "requests", "sklearn")
PLANNER = "dynamo.planner."


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that the rules do not use."""

    def find_spec(self, name, path, target=None):
        if name.startswith(STUBS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module

    def exec_module(self, module):
        pass


def load(name):
    return importlib.import_module(PLANNER + name)


sys.meta_path.insert(0, Stubs())
for package in ("dynamo", "dynamo.common", "dynamo.planner", PLANNER + "core", PLANNER + "core.perf_model"):  # not their __init__
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [str(ROOT / package.replace(".", "/"))]
ais = load("core.perf_model.ais_adapter")
sys.modules[PLANNER + "core.perf_model"].PlannerEnginePerfModel = ais.PlannerEnginePerfModel
state_machine, planner_types = load("core.state_machine"), load("core.types")
sys.modules[PLANNER + "core"].PlannerScalingState = state_machine.PlannerScalingState
for name in ("FpmObservations", "ScalingDecision", "TickDiagnostics", "TickInput", "TrafficObservation", "WorkerCapabilities",
             "WorkerCounts", "PlannerEffects", "ScheduledTick", "EngineCapabilities"):
    setattr(sys.modules[PLANNER + "core"], name, getattr(planner_types, name))
PlannerConfig = load("config.planner_config").PlannerConfig
BuiltinLoadPredict = load("plugins.builtins.local_planner").BuiltinLoadPredict
Metrics = load("monitoring.traffic_metrics").Metrics
adapter_module = load("plugins.orchestrator.engine_adapter")
PipelineOutcome = load("plugins.orchestrator.pipeline").PipelineOutcome
ComponentKey = load("plugins.merge.types").ComponentKey
plugin_types = load("plugins.types")
fpm = importlib.import_module("dynamo.common.forward_pass_metrics")


class StepTimes:
    """A performance model: linear in what a step computes."""

    def __init__(self, weights):
        self.weights = weights

    def estimate_forward_pass_time_ms(self, ranks):
        base, prefill, decode, context = self.weights
        s = ranks[0]["scheduled_requests"]
        return (base + prefill * s["sum_prefill_tokens"] + decode * s["num_decode_requests"]
                + context * s["sum_decode_kv_tokens"]) / 1000

    def diagnostics(self):
        return {"readiness": "ready"}


ais.PlannerEnginePerfModel._build_ais_config = lambda self: {"worker_type": self._worker_type}


class Planner:
    """The planner of one role, in the order of its orchestrator (_project_scale_to)."""

    def __init__(self, config, role, caps):
        self.role, self.now, self.config = role, 0.0, config
        both = planner_types.WorkerCapabilities(prefill=caps, decode=caps)
        self.state = state_machine.PlannerScalingState(config, both)
        self.predict = BuiltinLoadPredict(config, both)
        self.adapter = object.__new__(adapter_module.OrchestratorEngineAdapter)
        self.adapter._config, self.adapter._capabilities = config, both
        self.adapter._clock = types.SimpleNamespace(monotonic=lambda: self.now)
        self.adapter._startup_down_candidate = self.adapter._startup_down_inventory = None
        self.adapter._startup_down_since, self.adapter._startup_down_sources = 0.0, frozenset()

    def counts(self, look):
        still = look["starting"] == look["draining"] == 0
        of = {f"ready_num_{self.role}": look["ready"], f"{self.role}_scaling_in_progress": not still,
              f"expected_num_{self.role}": look["ready"] if still else None,
              f"pending_num_{self.role}": 0 if look["draining"] else look["starting"]}
        c = planner_types.WorkerCounts(**of)
        self.state.begin_tick()
        self.state.observe_worker_counts(c)
        return c

    def decide(self, counts, decision):
        """The number that the planner wants, None if it does nothing."""
        wanted = decision and getattr(decision, f"num_{self.role}")
        if not counts.startup_in_progress:
            self.adapter._startup_down_candidate = None
            return wanted
        targets = [] if wanted is None else [plugin_types.ComponentTarget(sub_component_type=self.role, replicas=wanted)]
        explicit = frozenset(ComponentKey(sub_component_type=self.role) for _ in targets)
        d = self.adapter._project_startup_scale_down(
            PipelineOutcome(execute_action="apply", final_proposal=plugin_types.ScalingProposal(targets=targets),
                            proposed_components=explicit), counts)
        return d and getattr(d, f"num_{self.role}")

    def load(self, look):
        self.now += 5
        counts = self.counts(look)
        values = {(str(i), 0): fpm.ForwardPassMetrics(
            worker_id=str(i), scheduled_requests=fpm.ScheduledRequestMetrics(sum_decode_kv_tokens=v))
            for i, v in enumerate(look["values"])}
        return self.decide(counts, self.state.advance_load(planner_types.FpmObservations(decode=values)))

    def throughput(self, look):
        self.now += look["seconds"]
        counts = self.counts(look)
        n = look["completed"]
        m = Metrics(num_req=float(look["arrived"]), ttft=0.1, itl=0.01, request_duration=1.0,
                    isl=look["input"] / n if n else math.nan, osl=look["output"] / n if n else math.nan)
        m.normalize_idle_nans()
        decision = None
        if m.is_valid():
            traffic = planner_types.TrafficObservation(duration_s=look["seconds"], num_req=m.num_req, isl=m.isl, osl=m.osl,
                                                       kv_hit_rate=look["cached"] if n else None)
            self.predict._observe_traffic(traffic)
            requests, isl, osl = self.predict._predict_load()
            decision = self.state.advance_throughput_from_prediction(
                traffic, predicted_num_req=requests, predicted_isl=isl, predicted_osl=osl,
                predicted_kv_hit_rate=self.predict._last_kv_hit_rate)
        if look["draining"]:  # KubernetesConnector.set_component_replicas does nothing then
            decision = None
        return self.decide(counts, decision)


def inventory(r, ready, wanted):
    """The replicas at the next look: what was wanted, or some of them start or drain."""
    look = {"ready": max(1, wanted or ready), "starting": 0, "draining": 0}
    if r.random() < 0.4:
        look["starting"] = r.randint(1, 3)
        look["ready"] = max(1, look["ready"] - r.randint(0, 2))
    elif r.random() < 0.1:
        look["draining"] = 1
    return look


def again(r, look, before):
    """Often the same replicas as at the look before."""
    if before and r.random() < 0.5:
        return {k: before[k] for k in ("ready", "starting", "draining")}
    return look


def load_case(r):
    target, kv = r.choice(("throughput", "latency", "load")), 1000
    down, up = sorted(r.sample(range(5, 100, 5), 2))
    limits = {"decode_scale_up_kv_rate": up, "decode_scale_down_kv_rate": down} if target == "load" else {}
    config = PlannerConfig(mode="agg", optimization_target=target, served_model_name="m", max_gpu_budget=-1, **limits)
    p = Planner(config, "decode", planner_types.EngineCapabilities(num_gpu=1, max_num_batched_tokens=2048, max_kv_tokens=kv))
    case = {"kind": "load", "target": target, "kv_tokens": kv, "looks": []}
    if limits:
        case.update(up=up / 100, down=down / 100)
    edges = {"throughput": (600, 1000), "latency": (100, 400), "load": (10 * down, 10 * up)}[target]
    wanted, before = r.randint(1, 6), None
    for _ in range(r.randint(5, 20)):
        look = before = again(r, inventory(r, wanted, wanted), before)
        look = dict(look)
        one_less = edges[1] * max(1, look["ready"] - 1) // look["ready"]  # with one replica less it is the upper limit
        top = r.choice((0, edges[0] // 2, edges[0] - 1, edges[0], min(one_less, edges[0]) - 1, min(one_less, edges[0]),
                        edges[1], edges[1] + 1, r.randint(0, 2 * edges[1])))
        look["values"] = [r.randint(0, top) for _ in range(look["ready"] - 1)] + [top]
        look["want"] = p.load(look)
        wanted = look["want"] or look["ready"]
        case["looks"].append(look)
    return case


def sla_case(r):
    mode = r.choice(("agg", "agg", "prefill", "decode"))
    role = "prefill" if mode == "prefill" else "decode"
    weights = [r.randint(1000, 20000), r.randint(5, 200), r.randint(10, 500), r.choice((0, 0, 1))]
    ais.AISCoreEnginePerfModel.best_available = classmethod(
        lambda cls, *, ais_config, worker_type, limits, max_observations, attention_dp_size: cls(
            model=StepTimes(weights), worker_type=worker_type, limits=limits, attention_dp_size=1, max_observations=64))
    caps = planner_types.EngineCapabilities(num_gpu=1, max_num_batched_tokens=r.choice((512, 2048, 8192)),
                                            max_num_seqs=r.choice((1, 8, 64, 128, 129, 256, 1000)),
                                            max_kv_tokens=r.randint(1000, 400000))
    fields = {"load_predictor": r.choice(("constant", "kalman")), "ttft_ms": r.choice((50.0, 500.0, 2000.0)),
              "itl_ms": r.choice((10.0, 50.0, 200.0)), "max_throughput_scaling_replicas": r.choice((1, 3, 8)),
              "kalman_q_level": r.choice((1.0, 0.2)), "kalman_q_trend": r.choice((0.1, 0.5)),
              "kalman_r": r.choice((10.0, 2.0)), "kalman_min_points": r.choice((1, 2, 5))}
    config = PlannerConfig(mode=mode, optimization_target="sla", served_model_name="m", max_gpu_budget=-1,
                           pre_deployment_sweeping_mode="none", **fields)
    p = Planner(config, role, caps)
    case = {"kind": "sla", "mode": mode, "step_us": weights, "max_num_batched_tokens": caps.max_num_batched_tokens,
            "max_num_seqs": caps.max_num_seqs, "kv_tokens": caps.max_kv_tokens, "predictor": fields["load_predictor"],
            "ttft_ms": fields["ttft_ms"], "tpot_ms": fields["itl_ms"], "max_change": fields["max_throughput_scaling_replicas"],
            "q_level": fields["kalman_q_level"], "q_trend": fields["kalman_q_trend"], "r": fields["kalman_r"],
            "min_points": fields["kalman_min_points"], "looks": []}
    isl, osl = r.randint(20, 4000), r.randint(1, 400)
    model = {"agg": "_agg_regression", "prefill": "_prefill_regression", "decode": "_decode_regression"}[mode]
    one = getattr(p.state, model).find_engine_capacity_rps(
        isl=isl, osl=osl, ttft_sla_ms=None if mode == "decode" else config.ttft_ms,
        itl_sla_ms=None if mode == "prefill" else config.itl_ms)
    rate = one.rps if one else 1.0
    wanted, before = r.randint(1, 6), None
    for _ in range(r.randint(5, 15)):
        look = before = again(r, inventory(r, wanted, wanted), before)
        seconds = r.choice((60, 180))
        arrived = 0 if r.random() < 0.1 else int(rate * seconds * r.uniform(0, 8)) + r.randint(0, 1)
        completed = 0 if r.random() < 0.1 else max(1, int(arrived * r.uniform(0.5, 1.5)))
        look = dict(look, seconds=seconds, arrived=arrived, completed=completed,
                    input=max(1, int(isl * r.uniform(0.8, 1.2))) * completed + r.randint(0, completed),
                    output=max(1, int(osl * r.uniform(0.8, 1.2))) * completed + r.randint(0, completed),
                    cached=r.choice((0, 0, 0.25, 0.5, 1)))
        look["want"] = p.throughput(look)
        wanted = look["want"] if look["want"] is not None else look["ready"]
        case["looks"].append(look)
    return case


r = random.Random(int(sys.argv[3]))
for k in range(int(sys.argv[2])):
    print(json.dumps((load_case if k % 2 else sla_case)(r)))
