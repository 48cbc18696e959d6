//! Writes random states of eight workers, and the choices of the worker selector of Dynamo's KV router in each:
//! the workers that it chooses at temperature 0, of which there are several if their costs are equal, and how
//! often it chooses each at a higher temperature.
//!
//!     dynamo-oracle STATES SEED
//!
//! Each line of the output is a state.

use std::collections::HashMap;

use dynamo_kv_router::config::KvRouterConfig;
use dynamo_kv_router::protocols::{RoutingConstraints, WorkerId, WorkerWithDpRank};
use dynamo_kv_router::scheduling::{OverlapSignals, ScheduleMode, SchedulingRequest};
use dynamo_kv_router::test_utils::SimpleWorkerConfig;
use dynamo_kv_router::{DefaultWorkerSelector, WorkerLoadProjection, WorkerSelectionInput, WorkerSelector, WorkerType};
use serde_json::{Value, json};

const WORKERS: usize = 8;
const BLOCK: usize = 16;
/// Choices at a temperature above 0.
const DRAWS: usize = 2000;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let states = args.next().unwrap_or(1000);
    let mut rng = fastrand::Rng::with_seed(args.next().unwrap_or(1));
    for _ in 0..states {
        println!("{}", state(&mut rng));
    }
}

/// One in two is the default.
fn maybe(rng: &mut fastrand::Rng, default: f64, values: &[f64]) -> f64 {
    if rng.bool() { default } else { values[rng.usize(..values.len())] }
}

fn state(rng: &mut fastrand::Rng) -> Value {
    let isl = 1 + rng.usize(..4000);
    let blocks = isl / BLOCK;
    let busy = 1 + rng.usize(..20); // low limits give equal costs
    let mut config = KvRouterConfig {
        overlap_score_credit: maybe(rng, 1.0, &[0.0, 0.5, 2.0]),
        overlap_score_credit_decay: maybe(rng, 0.0, &[0.5, 1.0, 3.0]),
        prefill_load_scale: maybe(rng, 1.0, &[0.0, 0.25, 2.0]),
        decode_active_request_weight: maybe(rng, 0.0, &[1.0, 4.5]),
        router_temperature: 0.0,
        ..Default::default()
    };
    let track_prefill = rng.u8(..5) > 0;
    let mut request = request(isl, track_prefill);
    let mut replicas = Vec::new();
    for id in 0..WORKERS {
        let worker = WorkerWithDpRank::from_worker_id(id as WorkerId);
        let cached = if rng.bool() { rng.usize(..=blocks) } else { 0 };
        let shared = rng.usize(..=cached);
        let load = WorkerLoadProjection {
            active_prefill_tokens: rng.usize(..busy) * 512,
            active_decode_blocks: rng.usize(..busy) * 32 + shared,
            active_requests: rng.usize(..busy),
            additional_active_blocks: blocks - shared,
        };
        request.worker_loads.insert(worker, load);
        request.overlap.tier_overlap_blocks.device.insert(worker, cached);
        request.overlap.effective_overlap_blocks.insert(worker, cached as f64);
        request.overlap.effective_cached_tokens.insert(worker, cached * BLOCK);
        replicas.push(json!({"prefill_tokens": load.active_prefill_tokens, "blocks": load.active_decode_blocks,
            "requests": load.active_requests, "cached": cached, "shared": shared}));
    }
    let best: Vec<usize> = (0..WORKERS).filter(|w| counts(&config, &request, 64, rng)[*w] > 0).collect();
    let temperature = [0.05, 0.2, 1.0][rng.usize(..3)];
    config.router_temperature = temperature;
    let drawn = counts(&config, &request, DRAWS, rng);
    json!({"input": isl, "block_tokens": BLOCK, "replicas": replicas, "params": {
        "overlap_score_credit": config.overlap_score_credit,
        "overlap_score_credit_decay": config.overlap_score_credit_decay,
        "prefill_load_scale": config.prefill_load_scale,
        "decode_active_request_weight": config.decode_active_request_weight,
        "router_track_prefill_tokens": track_prefill},
        "best": best, "temperature": temperature, "drawn": drawn})
}

/// How often each worker is chosen in n selections.
fn counts(config: &KvRouterConfig, request: &SchedulingRequest, n: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
    let label = WorkerType::Aggregated.default_selector_label();
    let selector = DefaultWorkerSelector::new_seeded(Some(config.clone()), label, rng.u64(..));
    let workers: HashMap<WorkerId, SimpleWorkerConfig> =
        (0..WORKERS).map(|id| (id as WorkerId, SimpleWorkerConfig::default())).collect();
    let mut counts = vec![0; WORKERS];
    for _ in 0..n {
        let input = WorkerSelectionInput::configured(&workers, request, request.eligibility(), BLOCK as u32);
        let chosen = selector.select_worker(input).expect("a worker");
        counts[chosen.worker.worker_id as usize] += 1;
    }
    counts
}

fn request(isl_tokens: usize, track_prefill_tokens: bool) -> SchedulingRequest {
    SchedulingRequest {
        mode: ScheduleMode::QueryOnly { request_id: None },
        token_seq: None,
        isl_tokens,
        overlap: OverlapSignals::default(),
        kv_transfer_candidates: None,
        retain_kv_transfer_chain: false,
        worker_loads: Default::default(),
        track_prefill_tokens,
        router_config_override: None,
        lora_name: None,
        priority_jump: 0.0,
        strict_priority: 0,
        policy_class: None,
        session_context: None,
        expected_output_tokens: None,
        affinity_target: None,
        pinned_worker: None,
        allowed_worker_ids: None,
        routing_constraints: RoutingConstraints::default(),
        shared_cache_hits: None,
        resp_tx: None,
    }
}
