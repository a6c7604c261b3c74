"""The limits of this machine: its arithmetic peak, which no speed may exceed, and the bandwidth of its memory.

Both are measured after the rounds, when no contender runs.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.host import available_memory_bytes, gpu
from steelyard.measure import bandwidth, gemm
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.results import record
from steelyard.results.quantities import STEP_TIME
from steelyard.results.record import RunRecord, peak_name
from steelyard.results.round_results import RoundResults

# Winograd's convolutions F(4x4, 3x3) multiply a quarter as often as is counted, F(2x2, 3x3) 2.25 times less often (Lavin &
# Gray 2016, arXiv 1509.09308). The libraries of GPUs choose them by default.
FEWEST_MULTIPLICATIONS = 4.0

Call = Callable[..., Any]


def here(function: Callable[..., Any], *values: Any) -> Any:
    """Call a function on this machine."""
    return function(*values)


def check(session: Session, results: RoundResults, call: Call = here) -> dict[str, str]:
    """Compare the FLOP/s of every case with the peak; on the CPU it is measured again before a speed is rejected.

    `call`: calls a function on the machine that measured.

    Returns {case id: message} for speeds above the peak. The peak of the CPU, the bandwidth of its memory, the messages, and the
    notes on speeds that only convolutions with fewer multiplications explain, are written into run.json.
    """
    known = record.read(session.folder)
    found: dict[str, str] = {}
    notes: dict[str, str] = {}
    peak: dict[str, dict[str, float]] = {}
    moved: dict[int, float] = {}
    cache_bytes = known.last_cache_bytes
    of_gpu = call(gpu.peak_gflops)
    for variant in session.plan.variants:
        settings, gflops = variant.case.settings, _fastest_gflops(session, variant, results)
        error = note = ""
        if settings.device == "cpu":
            threads = known.threads_of(variant.case)
            error = call(gemm.peak_check, known.machine, threads, settings.precision, gflops) if gflops else ""
            peak[peak_name(settings.precision, threads)] = call(gemm.peaks, known.machine, threads, settings.precision)
            if gflops:
                moved[threads] = max(moved.get(threads, 0.0), _moved_gbps(session, variant, results, cache_bytes))
        elif settings.device == "cuda" and of_gpu and not settings.knobs.get("tf32"):
            error, note = judge_on_gpu(gflops, of_gpu, _convolves(session, variant))
        found |= {variant.case.id: f"{error}."} if error else {}
        notes |= {variant.case.id: f"{note}."} if note else {}
    speeds = {
        str(threads): gbps
        for threads, most in moved.items()
        if (gbps := _bandwidth(session, known, threads, most, call))
    }
    record.update(session.folder, peak=peak, bandwidth=speeds, above_peak=found, fewer_multiplications=notes)
    return found


def _bandwidth(session: Session, known: RunRecord, threads: int, moved_gbps: float, call: Call) -> float | None:
    """Return the measured bandwidth of the memory, GB/s, and None where it cannot be measured, which fails no run.

    It is measured if it is not known, and again before a share of more than all of it is reported.
    """
    found: float | None = call(bandwidth.known_gbps, known.machine, threads)
    if found is not None and moved_gbps <= found:
        return found
    try:
        free_bytes = call(available_memory_bytes)
        measured: float = call(bandwidth.measured_gbps, known.machine, threads, known.last_cache_bytes, free_bytes)
        return measured
    except UserError as error:
        session.screen.say(str(error))
        return found


def judge_on_gpu(gflops: float, peak: float, convolves: bool) -> tuple[str, str]:
    """Return why a speed on a GPU is an error, and what is remarkable about it; empty texts where it is neither.

    `peak`: of the GPU outside its tensor cores, GFLOP/s. `convolves`: whether the network has convolutions of windows, for
    which there are algorithms with fewer multiplications than are counted.
    """
    if gflops <= peak:
        return "", ""
    speed = (
        f"{gflops / 1000:.2f} TFLOP/s of direct arithmetic are more than this GPU can do ({peak / 1000:.1f} in float32)"
    )
    if not convolves:
        return f"{speed}, so the measured time or the number of operations is wrong", ""
    if gflops <= FEWEST_MULTIPLICATIONS * peak:
        return "", f"{speed}. That is possible only with convolutions that multiply less often, such as Winograd's"
    most = f"{FEWEST_MULTIPLICATIONS:g} times as much, the most that Winograd's convolutions save"
    return f"{speed}, and more than {most}, so the measured time or the number of operations is wrong", ""


def _convolves(session: Session, variant: Variant) -> bool:
    network = workloads.described(Path(session.plan.workload_folders[variant.case.workload]), variant.case.sizes)
    return any(each.kind == "conv" and max(each.shape[2:]) > 1 for each in network.parameters)


def _fastest_gflops(session: Session, variant: Variant, results: RoundResults) -> float:
    """Return the highest GFLOP/s of any trial and input; 0 without finished trials."""
    flops = session.plan.group(variant.group).known_step_flops(variant.case) / variant.case.batch
    return max((flops * batch / ns for batch, ns in _steps(variant, results)), default=0.0)


def _moved_gbps(session: Session, variant: Variant, results: RoundResults, cache_bytes: int) -> float:
    """Return the most GB/s that any trial and input must have moved; 0 where a cache can hold all of its data."""
    traffic = session.plan.group(variant.group).known_traffic(variant.case)
    found = (traffic.moved(batch) / ns for batch, ns in _steps(variant, results) if traffic.held(batch) > cache_bytes)
    return max(found, default=0.0)


def _steps(variant: Variant, results: RoundResults) -> list[tuple[int, float]]:
    """Return the batch and the time of a step, ns, of every finished trial and input."""
    trials = results.finished.get(variant.case.id, {})
    return [
        (trials[number].batch, ns)
        for source in ("pipeline", "cached")
        for number, ns in STEP_TIME.of_rounds(trials, source).items()
    ]
