"""The peak check: a speed above this machine's measured matrix product is an error, not a result."""

from steelyard.measure import gemm
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.results import record
from steelyard.results.quantities import STEP_TIME
from steelyard.results.round_results import RoundResults


def check(session: Session, results: RoundResults) -> dict[str, str]:
    """Compare the FLOP/s of every case on the CPU with the peak, which is measured again before a speed is rejected.

    Returns {case id: message} for speeds above the peak. Both the peak and the messages are written into run.json.
    """
    known = record.read(session.folder)
    on_cpu = [variant for variant in session.plan.variants if variant.case.settings.device == "cpu"]
    found: dict[str, str] = {}
    peak: dict[str, dict[str, float]] = {}
    for variant in on_cpu:
        threads, precision = threads_of(session, variant), variant.case.settings.precision
        gflops = _fastest_gflops(session, variant, results)
        if gflops and (sentence := gemm.peak_check(known.machine, threads, precision, gflops)):
            found[variant.case.id] = f"{sentence}."
        peak[precision] = gemm.peaks(known.machine, threads, precision)
    record.update(session.folder, peak=peak, above_peak=found)
    return found


def threads_of(session: Session, variant: Variant) -> int:
    """Return the number of threads of a case: as set, or all cores that this process may use."""
    return variant.case.settings.threads or int(record.read(session.folder).host["cores_usable"])


def _fastest_gflops(session: Session, variant: Variant, results: RoundResults) -> float:
    """Return the highest GFLOP/s of any trial and input; 0 without finished trials."""
    trials = results.finished.get(variant.case.id, {})
    times = [ns for source in ("pipeline", "cached") for ns in STEP_TIME.of_rounds(trials, source).values()]
    flops = session.plan.group(variant.group).step_flops(variant.case)
    return flops / min(times) if times else 0.0
