"""A rough estimate of the time that a plan takes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks, strategies, workloads
from steelyard.plan import memory
from steelyard.plan.protocols import Protocol
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard_worker import steady
from steelyard_worker.case import INFERENCE, TRAINING, Case
from steelyard_worker.protocol import Schedule
from steelyard_worker.strategy import bits_per_second, link_of, parts_of, without_hosts
from steelyard_worker.strategy_kinds import ASYNCHRONOUS

# Rough figures for planning only, from runs on two cores: seconds, and the share of the arithmetic peak that is reached.
# Those of certificates gave between half and one and a half times what ten studies of small networks without stored ones took.
# Two processes run side by side, and share the cores while they compute.
# One took eight times the estimate. It leaves out the processes that check update rules, and the further ones of a result that
# has to be looked at more closely. Certificates do not record how long they took, so nothing can be learnt from those in the
# cache.
MOST_OF_CERTIFICATES = 8
CERTIFY_S = 7.0
CERTIFY_STARTS = 1
REFERENCE_S = 14.0
SIDE_BY_SIDE = 2
# What the processes of a certificate compute, in steps: five of training, gradients, an inference and an adversarial step. The
# first reference does it three times and the second one once, in float64, which takes about three times as long. Certificates of
# Inception v3 and ResNet-50 at a batch of four took 1.1 and 1.3 times the estimate.
CERTIFIED_STEPS = 8
REFERENCE_STEPS = 4 * 3 * CERTIFIED_STEPS
# A process that counts a graph makes it anew for every choice of passes.
COUNTED_STARTS = 3
ENVIRONMENT_S = 15.0
# A step takes its operations one by one, and computes. The mean of the frameworks took 0.6 to 1.4 times this, for steps of 3 ms
# to 5 s of eight networks in training and three in inference.
DISPATCH_S = {TRAINING: 0.01, INFERENCE: 0.003}
SHARE_OF_PEAK = 0.5
# How often a loop over time moves its weights in every step: forward, and in training backward, where their gradient is read and
# written, too. PyTorch and TensorFlow together took 0.8 to 1.5 times what this says of GNMT, Deep Speech 2 and Tacotron 2.
LOOP_PASSES = {TRAINING: 4, INFERENCE: 1}
# Compilations of one process for the shapes of an epoch where every batch has its own: a few shapes, for some seconds each.
SHAPES_S = 20.0
# Processes of a search: a few powers of two, some halves, and the last batch again.
SEARCHED = 9
# A profiled process: blocks of about a second, of a few steps at least and some at most, and the time to read its events.
PROFILED_BLOCKS = 5
PROFILED_BLOCK_S = 1.0
PROFILED_STEPS = (3, 20)
PROFILE_READ_S = 2.0
# The exchange of ranks by itself: all-reduces that warm up, and blocks of at least 0.3 s; or the updates of an asynchronous
# training. Sixty such measurements, without a link and over links of 10 Mbit/s to 10 Gbit/s, took 1.1 times the estimate.
EXCHANGED_CALLS, EXCHANGED_BLOCKS, EXCHANGED_BLOCK_S = 4, 5, 0.3
STALE_STEPS = 110
# Samples of a data set whose size is not known.
USUAL_SAMPLES = 20_000


@dataclass(frozen=True)
class Known:
    """The facts that are known before a run.

    `samples`: data set -> training samples, for protocols that count epochs. `core_flops`: the arithmetic peak of one core in
    FLOP/s; `bandwidth`: that of memory in B/s. The defaults are those of a usual server, for machines that were not measured yet.
    """

    samples: Mapping[str, int] = field(default_factory=dict)
    core_flops: float = 75e9
    bandwidth: float = 25e9


NOTHING_KNOWN = Known()


def estimate(plan: RunPlan, known: Known = NOTHING_KNOWN) -> dict[str, float]:
    """Estimate the seconds of each stage from FLOPs, loops over time, and fixed costs.

    `environments`: if all must be created; `certificates`: if none is stored, `most_certificates`:
    at the longest; `rounds`: for the fewest rounds, `most_rounds`:
    for the most; `profiles`: of all profiled processes; `graphs`: to count the operations of steps' graphs; `exchange`: to
    measure by itself what ranks exchange.
    """
    certificates_s = _certificates_s(plan, known) if plan.options.certify else 0.0
    return {
        "environments": ENVIRONMENT_S * len(plan.environments),
        "certificates": certificates_s,
        "most_certificates": MOST_OF_CERTIFICATES * certificates_s,
        "rounds": _rounds_s(plan, known, lambda protocol: protocol.rounds_min),
        "most_rounds": _rounds_s(plan, known, lambda protocol: protocol.rounds_max),
        "profiles": plan.profiles * sum(_profile_s(plan, each, known) for each in plan.variants),
        "graphs": sum(COUNTED_STARTS * _start_s(each) for each in plan.counted),
        "exchange": sum(_exchange_s(plan, each, known) for each in plan.variants),
    }


def rounds_at_once(protocol: Protocol) -> int:
    """Return how many rounds can run at the same time on as many machines, because no decision lies between them."""
    return protocol.rounds_max if not protocol.sequential else max(1, protocol.drops_from - 1)


def step_s(plan: RunPlan, variant: Variant, known: Known = NOTHING_KNOWN) -> float:
    """Return the estimated time of one step in seconds."""
    return DISPATCH_S[variant.case.task] + _computing_s(plan, variant, known) + _transfer_s(plan, variant)


def _computing_s(plan: RunPlan, variant: Variant, known: Known) -> float:
    """Return the part of a step's time that its arithmetic takes, and reading the weights of its loops from memory."""
    case, group = variant.case, plan.group(variant.group)
    arithmetic = group.step_flops(case) / (known.core_flops * max(1, case.settings.threads or 1) * SHARE_OF_PEAK)
    return arithmetic + memory.FLOAT * LOOP_PASSES[case.task] * group.loop_reads / known.bandwidth


def _transfer_s(plan: RunPlan, variant: Variant) -> float:
    """Return the least time that a step's gradients take over the link between hosts; 0 where a strategy has none."""
    case = variant.case
    rate, ranks = bits_per_second(link_of(case.strategy)), parts_of(case.strategy)
    if not rate:
        return 0.0
    # In a ring, every rank sends 2 (n - 1) / n times the buffer.
    return 2 * (ranks - 1) / ranks * 8 * memory.FLOAT * plan.group(variant.group).parameters / rate


def in_words(seconds: float) -> str:
    """Return `40 seconds`, `7 minutes`, `5 hours` or `3 days`."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _certificates_s(plan: RunPlan, known: Known) -> float:
    """Return the time for certificates. Cases that share one, and forms of an update rule that share references, count once."""
    candidates = {_certified(variant.case).id: variant for variant in reversed(plan.variants)}
    references = {_of_references(variant.case): variant for variant in candidates.values()}
    fixed = sum(CERTIFY_S + CERTIFY_STARTS * _start_s(each) for each in candidates.values())
    fixed += 2 * REFERENCE_S * len(references)
    computed = sum(CERTIFIED_STEPS * _computing_s(plan, each, known) for each in candidates.values())
    computed += sum(REFERENCE_STEPS * _computing_s(plan, each, known) for each in references.values())
    return fixed / SIDE_BY_SIDE + computed


def _certified(case: Case) -> Case:
    """Return the case with everything that its certificate does not depend on as in others."""
    return replace(
        frameworks.as_certified(case), strategy=without_hosts(case.strategy), loader_workers=0, memory_limit=0
    )


def _of_references(case: Case) -> tuple[str, ...]:
    """Return what decides the references of a case's certificate."""
    form = frameworks.declared_form(frameworks.framework(case.framework), case.optimizer)
    inputs = (
        case.specification,
        case.sizes,
        case.data,
        case.seed,
        case.task,
        replace(case.optimizer, implementation=""),
    )
    return tuple(map(str, (*inputs, sorted(form.items()))))


def _start_s(variant: Variant) -> float:
    """Return about how many seconds a process takes to its second step."""
    return frameworks.framework(variant.case.framework).start_s(variant.case.settings.mode)


def _rounds_s(plan: RunPlan, known: Known, rounds: Callable[[Protocol], int]) -> float:
    found = 0.0
    for variant in plan.variants:
        group, seconds = plan.group(variant.group), step_s(plan, variant, known)
        data = variant.case.data
        count = data.get("samples") or known.samples.get(data.get("name", ""), USUAL_SAMPLES)
        count = min(count, data.get("train_limit") or count)
        steps_per_epoch = max(1, count // variant.case.batch)
        schedule = group.protocol.schedule
        if group.protocol.searches_batch:
            found += _search_s(plan, variant, schedule, seconds) * rounds(group.protocol)
            continue
        start_s = _start_s(variant)
        turns = group.takes_turns and len(group.variants) > 1
        schedule = replace(schedule, turns=schedule.turns if turns else 0)
        steps = _steps(schedule, seconds, start_s, steps_per_epoch, bool(variant.case.data))
        process_s = start_s + steps * seconds
        process_s += SHAPES_S if variant.case.cuts_batches else 0.0
        if variant.case.task == INFERENCE:
            process_s += _latency_s(schedule, seconds)
        # The first process trains on to its evaluation, which needs data.
        further = max(0, group.train_steps - steps) if variant.case.data else 0
        found += process_s * rounds(group.protocol) + further * seconds
    return found


def _profile_s(plan: RunPlan, variant: Variant, known: Known) -> float:
    """Return the time of a process that warms up and is profiled."""
    seconds, schedule = step_s(plan, variant, known), plan.group(variant.group).protocol.schedule
    fewest, most = PROFILED_STEPS
    steps = min(most, max(fewest, math.ceil(PROFILED_BLOCK_S / seconds)))
    return (
        _start_s(variant) + (1 + _warm_up_steps(schedule, seconds) + PROFILED_BLOCKS * steps) * seconds + PROFILE_READ_S
    )


def _exchange_s(plan: RunPlan, variant: Variant, known: Known) -> float:
    """Return the time of the ranks that exchange and do nothing else; 0 where a strategy has none."""
    spread = frameworks.framework(variant.case.framework).spread(variant.case.strategy)
    if not strategies.exchanges(spread):
        return 0.0
    if spread.kind == ASYNCHRONOUS:
        return _start_s(variant) + STALE_STEPS * step_s(plan, variant, known)
    call_s = _transfer_s(plan, variant)
    return _start_s(variant) + EXCHANGED_CALLS * call_s + EXCHANGED_BLOCKS * max(EXCHANGED_BLOCK_S, call_s)


def _search_s(plan: RunPlan, variant: Variant, schedule: Schedule, seconds: float) -> float:
    """Return the time of a search for the largest batch that fits; `seconds`: of a step of the case's own batch."""
    case, batch = variant.case, variant.case.batch
    if case.memory_limit:
        network = workloads.described(Path(plan.workload_folders[case.workload]), case.sizes)
        batch = max(1, memory.fitting_batch(network, case.optimizer, case.memory_limit))
    return SEARCHED * (_start_s(variant) + (2 + schedule.counted.count) * seconds * batch / case.batch)


def _latency_s(schedule: Schedule, seconds: float) -> float:
    """Return the time for batches that are timed one by one."""
    return min(max(schedule.latency_s, schedule.latency_fewest * seconds), schedule.latency_most * seconds)


def _steps(schedule: Schedule, seconds: float, start_s: float, steps_per_epoch: int, has_data: bool) -> float:
    """Return the steps of one process: its first step, its warm-up, its counted steps, and those on the cached batch."""
    fewest = steady.fewest_steps(seconds, schedule.counted_min)
    if schedule.warmup.unit == "adaptive":
        warm_up = _warm_up_steps(schedule, seconds)
        start_s += warm_up * seconds
        counted = steady.counted_steps(start_s, seconds, schedule.noise_ratio, fewest, schedule.counted_max)
        # A block is counted as a whole.
        shortest_s = schedule.turn_min_s if schedule.turns else schedule.block_min_s
        size = steady.block_steps(seconds, shortest_s, schedule.block_min_steps)
        turns = steady.turns(start_s, size * seconds, schedule.turns) if schedule.turns else 1
        total = 1 + warm_up + size * max(turns, math.ceil(counted / size))
    else:
        lengths = (schedule.warmup, schedule.counted)
        total = 1 + sum(each.count * (steps_per_epoch if each.unit == "epochs" else 1) for each in lengths)
    both = has_data and {"pipeline", "cached"} <= set(schedule.inputs)
    # After the pipeline a process is warm, and the cached batch needs a few steps only.
    settled = steady.fewest_steps(seconds, steady.SETTLED_STEPS) + max(fewest, schedule.block_min_s / seconds)
    return total + (settled if both else 0)


def _warm_up_steps(schedule: Schedule, seconds: float) -> float:
    return max(steady.fewest_steps(seconds, schedule.warmup_min_steps), schedule.warmup_min_s / seconds)


def as_dict(plan: RunPlan, known: Known) -> dict[str, Any]:
    """Return plan and estimate as plain values, for scripts."""
    cases = [
        {"case": each.key, "id": each.case.id, "framework": each.case.framework, "mode": each.case.settings.mode}
        for each in plan.variants
    ]
    skipped = [{"group": each.group, "environment": each.environment, "reason": each.reason} for each in plan.skipped]
    return {
        "study": plan.study.name,
        "protocols": [each.name for each in plan.protocols],
        "cases": cases,
        "skipped": skipped,
        "estimate_s": estimate(plan, known),
    }
