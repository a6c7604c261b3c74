"""Numbers as a person reads them, for page and terminal alike: a value, its unit, and its interval where it has one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steelyard.report.notation import HOPELESS, duration, interval, significant, time_unit
from steelyard.statistics import metrics
from steelyard.statistics.sentences import factor_digits, percent

if TYPE_CHECKING:
    from steelyard.report.model import Comparison, Contender
    from steelyard.statistics.decision import Ranking
    from steelyard_worker.case import Case

INPUTS = {
    "pipeline": "Training from the framework's own input pipeline",
    "cached": "One synthetic batch that stays on the device: the framework alone",
}
SHORT_INPUTS = {"pipeline": "own input pipeline", "cached": "cached batch"}
CERTIFICATES = {"certified": "yes", "rejected": "REJECTED", "none": "none"}
INTERVALS = (
    "A range in brackets is where the true value lies with 95 % confidence, judged by how much fresh processes differed; "
    "ranges of ratios are drawn wider where several are compared, so that all verdicts on one table together mislead in "
    "at most 5 of 100 runs."
)
NOTHING = "-"


@dataclass(frozen=True)
class Told:
    """A figure in words; `interval` in brackets, empty where there is none."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        """Both in one line."""
        return f"{self.value} {self.interval}".strip()


def describe(comparison: Comparison) -> str:
    """Return what was computed, in a sentence or two."""
    origin = f" Data: {comparison.origin.rstrip('.')}." if comparison.origin else ""
    return f"{comparison.preset}; {comparison.parameters:,} parameters, batch {comparison.batch}.{origin}"


def headline(comparison: Comparison, source: str) -> str:
    """Return who is the fastest, in as few words as it takes."""
    ranking = comparison.rankings[source]
    names = {contender.case.id: contender.title for contender in comparison.contenders}
    if len(ranking.order) < 2:
        certified = [names[key] for key in ranking.order]
        return f"No verdict: {'only ' + certified[0] if certified else 'nobody here'} is certified and measured."
    if ranking.rounds_run < 2 or ranking.leader is None:
        return "No verdict from one process each."
    level = [names[key] for key in ranking.order if key == ranking.leader or _equal(ranking, key)]
    undecided = [names[key] for key in ranking.order if key in ranking.still_undecided]
    if undecided:
        lead = f"{listed(level)} {'leads' if len(level) == 1 else 'lead'}"
        return f"No winner yet: {lead}, undecided against {listed(undecided)}."
    if len(level) == 1:
        return f"{level[0]} is the fastest."
    return f"{listed(level)} are the fastest, practically level."


def verdict(comparison: Comparison, source: str) -> str:
    """Return the sentence of a comparison."""
    ranking, sentence = comparison.rankings[source], comparison.sentences[source]
    if len(ranking.order) < 2:
        return "A verdict needs two certified contenders; numbers without a certificate are shown and take no part."
    if ranking.rounds_run < 2:
        return "One process each: no interval can be given, and no verdict. Measure again with --rounds 5."
    return sentence + "."


def listed(names: list[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def seconds(nanoseconds: float | None) -> str:
    """Return a time or nothing."""
    return duration(nanoseconds) if nanoseconds else NOTHING


def median(contender: Contender, source: str) -> str:
    """Return the median step."""
    speed = contender.speeds.get(source)
    return duration(speed.median_ns) if speed else NOTHING


def location(contender: Contender, source: str) -> Told:
    """Return the mean step with its interval over processes."""
    speed = contender.speeds.get(source)
    if not speed:
        return Told(NOTHING)
    where = speed.location
    if where.processes < 2:
        return Told(duration(where.value_ns), "[one process]")
    scale, unit = time_unit(where.value_ns)
    value, span = interval(where.value_ns / scale, where.low_ns / scale, where.high_ns / scale)
    return Told(f"{value} {unit}", span)


def throughput(contender: Contender, source: str, unit: str) -> Told:
    """Return samples per second with the interval over processes."""
    speed = contender.speeds.get(source)
    if not speed:
        return Told(NOTHING)
    if speed.processes < 2:
        return Told(f"{significant(speed.throughput)} {unit}/s")
    value, span = interval(speed.throughput, speed.throughput_low, speed.throughput_high)
    return Told(f"{value} {unit}/s", span)


def ratio(comparison: Comparison, contender: Contender, source: str) -> Told:
    """Return the time over the fastest contender's, with its interval."""
    speed = contender.speeds.get(source)
    if not speed:
        return Told(NOTHING)
    if contender.proof.state != "certified":
        return Told("not certified")
    if contender.above_peak:
        return Told("impossible")
    if contender.case.id == comparison.rankings[source].leader:
        return Told("fastest")
    if not speed.ratio:
        return Told(NOTHING)
    found = speed.ratio
    digits = factor_digits(found.low) if found.low > 1 else 2
    if found.high > HOPELESS * found.value:
        return Told(f"{found.value:.{digits}f}x", "[0, ∞]")
    return Told(f"{found.value:.{digits}f}x", f"[{found.low:.{digits}f}, {found.high:.{digits}f}]")


def memory(contender: Contender) -> str:
    """Return the peak: of the device where the framework counts it, else of the process."""
    size = contender.peak_device_bytes or contender.peak_resident_bytes
    return f"{size / 2**20:,.0f} MiB" if size else NOTHING


def learnt(contender: Contender) -> Told:
    """Return the headline score of the workload's metric, and after how many steps."""
    found = contender.evaluation
    if found is None or not found.scores:
        return Told(NOTHING)
    name, value = next(iter(found.scores.items()))
    said = f"{value * 100:.1f} %" if metrics.is_share(name) else f"{value:.3g}"
    return Told(said, f"{name}, step {found.steps:,}")


def share(contender: Contender, source: str) -> str:
    """Return the share of the arithmetic peak measured on this machine."""
    speed = contender.speeds.get(source)
    if not speed or speed.share_of_peak is None:
        return NOTHING
    return "under 0.1 %" if speed.share_of_peak < 0.001 else percent(speed.share_of_peak)


def build(contender: Contender) -> str:
    """Return version, mode and the settings that are not the framework's own."""
    knobs = settings(contender.case)
    return ", ".join(part for part in (contender.version, contender.mode, knobs) if part)


def settings(case: Case) -> str:
    """Return the knobs of a case in words; empty where all are at their defaults."""
    return ", ".join(f"{name} {value}" for name, value in sorted(case.settings.knobs.items()))


def machine(host: dict[str, Any]) -> str:
    """Return a machine in one line; empty where it was not recorded."""
    if not host:
        return ""
    cores = host.get("cores_usable")
    parts = [host.get("cpu_model"), f"{cores} {'core' if cores == 1 else 'cores'}" if cores else ""]
    parts += [
        f"{host['memory_bytes'] / 2**30:.0f} GiB memory" if host.get("memory_bytes") else "",
        *host.get("gpus", ()),
        *host.get("npus", ()),
    ]
    parts += [host.get("system"), "virtual machine" if host.get("virtualised") else ""]
    return ", ".join(str(part) for part in parts if part)


def moment(stamp: str) -> str:
    """Return `21 November 2026, 03:58 UTC`."""
    when = datetime.fromisoformat(stamp)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()


def _equal(ranking: Ranking, key: str) -> bool:
    found = ranking.between(ranking.leader, key) if ranking.leader else None
    return bool(found and found.kind == "equal")
