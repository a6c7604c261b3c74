"""Warnings: reasons not to trust a number, with advice. They are stored with the result."""

from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.analysis import nodes, repeated_rounds, reported
from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.analysis.model import Comparison, Contender, Source, Speed
from steelyard.analysis.notices import ResultWarning, by_words, with_ranges
from steelyard.results import loss_courses, memorised
from steelyard.statistics.sentences import listed, percent
from steelyard.wording.notation import duration
from steelyard.wording.task_words import fill
from steelyard_worker.case import TRAINING
from steelyard_worker.strategy import parts_of

INPUT_BOUND = 0.95
"""Below this ratio of the time with a cached batch to the time with the pipeline, the input limits the speed."""
SLOW_FIRST_STEPS = 20
MACHINE = "this machine"
RUN = "this run"
CHANGES = {
    "warm-up": "{Steps} got faster during the measurement",
    "slowdown": "{Steps} got slower during the measurement",
    "unstable": "{Step} times changed late in the measurement",
}
MEMORISED = (
    "The training has memorised its batch: the loss has vanished, and gradients so small may be subnormal numbers. Many "
    "processors compute with these far slower, and some frameworks replace them by 0."
)
SEVERITIES = ("error", "warning", "note")
# Kind -> (severity, advice).
KINDS = {
    "DisturbedRounds": (
        "warning",
        "Close other programs, or measure when the machine is idle. The intervals are wider than necessary.",
    ),
    "ShiftedRatios": (
        "warning",
        "Measure them again while nothing else runs (--fresh): more rounds beside the same load do not help.",
    ),
    "RepeatedRounds": (
        "note",
        "No action needed. A round is repeated for all contenders, and never because of its times alone.",
    ),
    "RepeatedForOne": (
        "note",
        "No action needed: they were repeated for all contenders. Close other programs to repeat fewer.",
    ),
    "VerdictOfRepeatedRounds": (
        "warning",
        "The verdict rests on which rounds were repeated. Measure again while nothing else runs (--fresh).",
    ),
    "LostNodes": ("note", "No action needed. A round is repeated as a whole on another node."),
    "LeftOutNodes": ("note", "The nodes that measured are equal. Measure the others in a run of their own."),
    "DamagedFile": (
        "warning",
        "The rest of the run was used. To measure again what is missing: steelyard run --resume RUN.",
    ),
    "SharedMachine": (
        "warning",
        "Measure again without --no-guard: the run then waits until the machine is free.",
    ),
    "NoisyMachine": ("warning", "Measure on a quieter machine to resolve smaller differences."),
    "FasterThanPossible": (
        "error",
        "The result is invalid: a synchronisation is missing, or part of the work was skipped.",
    ),
    "FewerMultiplications": (
        "warning",
        "The result is used. A trace of the kernels shows which algorithm computed the convolutions.",
    ),
    "Failed": ("warning", "The run continued with the other contenders."),
    "NotCertified": (
        "warning",
        "The numbers are shown but not used in any verdict. `steelyard certify` reports the first tensor that differs.",
    ),
    "SlowFirstStep": (
        "note",
        "It includes compilation, tracing and memory allocation. This matters for short jobs; compare the start-up times.",
    ),
    "NoSteadyState": ("note", "No action needed. More rounds reduce the effect; its times are on the page."),
    "NotScored": (
        "warning",
        'The times count. Let `predictions` in network.py fit `metric` in spec.toml, or write metric = "none".',
    ),
    "CompiledWhileCounted": ("warning", "The time includes compilation. Check the times on the page."),
    "LeftProcesses": (
        "warning",
        "The implementation must end what it starts: until its process ended, these may have computed beside it.",
    ),
    "CoresShared": (
        "warning",
        "Its times show how cores are shared. Choose fewer parts, or a machine with more cores.",
    ),
    "MemorisedBatch": (
        "warning",
        "Its ratios say little of other batches. Measure a larger batch (--batch), or data instead of synthetic batches.",
    ),
    "LossesPart": (
        "warning",
        "Verdicts between the two sides may compare unlike trainings. A further framework shows which side trains otherwise.",
    ),
    "Unsteady": (
        "note",
        "It stands beside the mean, too. No action needed; on an idle machine steps are often steadier.",
    ),
    "MemoryOfLibraries": ("note", "Compare peak memory with a larger batch or preset."),
    "InputBound": (
        "note",
        "See the table of the cached batch for the framework alone, or use more loader workers (--loader-workers).",
    ),
}


def find(
    comparisons: tuple[Comparison, ...],
    disturbances: tuple[dict[str, Any], ...],
    source: Source,
    damaged: Iterable[str] = (),
) -> tuple[ResultWarning, ...]:
    """Return all warnings about a run, the most severe first. `damaged`: one sentence for every part that is left out."""
    found = [_warning("DamagedFile", RUN, sentence) for sentence in damaged]
    found += _disturbed(disturbances)
    found += _shifted(comparisons, disturbances)
    if source.record.shared_machine:
        found.append(_warning("SharedMachine", MACHINE, "Another run of steelyard used the machine at the same time."))
    found += [_warning("LeftOutNodes", RUN, sentence) for sentence in source.record.left_out]
    for comparison in comparisons:
        found += _scatter(comparison)
        if sentence := reported.memory_of_libraries(comparison):
            found.append(_warning("MemoryOfLibraries", comparison.group, sentence))
        found += _repeated(comparison, source)
        found += _partings(comparison, source)
        for contender in comparison.contenders:
            found += _of_contender(comparison, contender, source)
            if not source.quantity.per_process:
                for name, speed in contender.speeds.items():
                    found += _of_speed(comparison, contender, name, speed)
    return tuple(sorted(found, key=lambda warning: SEVERITIES.index(warning.severity)))


def _warning(name: str, subject: str, sentence: str, advice: str = "") -> ResultWarning:
    severity, usual = KINDS.get(name, ("warning", "See output.log of the trial."))
    return ResultWarning(name, severity, subject, sentence, advice or usual)


def _disturbed(disturbances: tuple[dict[str, Any], ...]) -> Iterator[ResultWarning]:
    counted = [line for line in disturbances if line["kept"] and line["reasons"]]
    lost = [line for line in disturbances if nodes.was_lost(line)]
    again = sum(not line["kept"] for line in disturbances) - len(lost)
    if counted:
        reasons = _in_ranges({reason for line in counted for reason in line["reasons"]})
        sentence = f"{_rounds(len(counted))} disturbed but still counted: {'; '.join(reasons)}."
        yield _warning("DisturbedRounds", MACHINE, sentence)
    if again:
        sentence = f"{_rounds(again)} repeated because the machine was disturbed."
        yield _warning("RepeatedRounds", MACHINE, sentence)
    for line in lost:
        sentence = f"Round {line['round']} of {line['group']} was repeated because {'; '.join(line['reasons'])}."
        yield _warning("LostNodes", RUN, sentence)


def _repeated(comparison: Comparison, source: Source) -> Iterator[ResultWarning]:
    of_group = tuple(each for each in source.repeated if each.group == comparison.group)
    for title, sentence in repeated_rounds.by_contender(comparison, of_group):
        yield _warning("RepeatedForOne", f"{title} on {comparison.group}", sentence)
    for changed in repeated_rounds.changed_verdicts(comparison, source, of_group):
        yield _warning("VerdictOfRepeatedRounds", f"{changed.pair} on {comparison.group}", changed.sentence)


def _shifted(comparisons: tuple[Comparison, ...], disturbances: tuple[dict[str, Any], ...]) -> Iterator[ResultWarning]:
    """Yield a warning for every comparison of different numbers of processes in which a disturbed round counts.

    A program that takes a core from one of several ranks slows all of them, because they wait for each other.
    """
    loaded = {line["group"] for line in disturbances if line["kept"] and line["reasons"]}
    for comparison in comparisons:
        parts = sorted({parts_of(contender.case.strategy) for contender in comparison.contenders})
        if comparison.group in loaded and len(parts) > 1:
            sentence = (
                f"The load of other programs shifts ratios between {listed([str(count) for count in parts])} processes, because "
                "several wait for each other; the intervals do not show that."
            )
            yield _warning("ShiftedRatios", comparison.group, sentence)


def _in_ranges(reasons: set[str]) -> list[str]:
    """Return the reasons, sorted; those that differ only in their numbers become one with the ranges of the numbers."""
    return sorted(with_ranges(alike) for alike in by_words(reasons))


def _scatter(comparison: Comparison) -> Iterator[ResultWarning]:
    ranking = comparison.rankings.get(comparison.primary)
    if ranking and ranking.beyond_plan:
        sentence = (
            f"Ratios scatter by {percent(ranking.scatter)} from round to round, so contenders that differ by less than "
            f"{percent(ranking.delta_used)} are not told apart, and none are called the same."
        )
        yield _warning("NoisyMachine", comparison.group, sentence)


def _partings(comparison: Comparison, source: Source) -> Iterator[ResultWarning]:
    titles = {each.case.id: each.title for each in comparison.contenders}
    for parting in source.results.partings:
        if titles.keys() >= {*parting.cases, *parting.apart}:
            sides = [loss_courses.names(each, titles) for each in (parting.cases, parting.apart)]
            yield _warning("LossesPart", f"{' and '.join(sides)} on {comparison.group}", parting.sentence)


def _of_contender(comparison: Comparison, contender: Contender, source: Source) -> Iterator[ResultWarning]:
    subject = f"{contender.title} on {comparison.group}"
    if contender.case.id in source.record.above_peak:
        yield _warning("FasterThanPossible", subject, source.record.above_peak[contender.case.id])
    if note := source.record.fewer_multiplications.get(contender.case.id):
        yield _warning("FewerMultiplications", subject, note)
    if contender.failure:
        yield _warning("Failed", subject, contender.failure)
    if contender.speeds and contender.proof.state != "certified" and not contender.proof.on_purpose:
        yield _warning("NotCertified", subject, contender.proof.sentence)
    for each in reported.warnings(contender):
        yield _warning(each.name.title().replace("-", ""), subject, each.sentence, each.advice)
    first, steady = contender.first_step_ns, next(iter(contender.speeds.values()), None)
    if first and steady and first > SLOW_FIRST_STEPS * steady.location.value_ns:
        later = f"{first / steady.location.value_ns:,.0f}"
        sentence = f"The first {{step}} took {duration(first)}, as long as {later} later {{steps}}."
        yield _warning("SlowFirstStep", subject, fill(sentence, comparison.task))


def _of_speed(comparison: Comparison, contender: Contender, source: str, speed: Speed) -> Iterator[ResultWarning]:
    subject = f"{contender.title} on {comparison.group}, {SHORT_INPUTS[source]}"
    if speed.label and speed.label.moves_mean:
        bias = f"this may bias the mean by about {percent(abs(speed.label.shift))}"
        change = fill(CHANGES[speed.label.label], comparison.task)
        yield _warning("Unsteady", subject, f"{change}; {bias}.")
    if comparison.task == TRAINING and (times := memorised.slowest_block(contender.trials, source)):
        yield _warning(
            "MemorisedBatch", subject, f"{MEMORISED} A block took up to {times:.0f} times as long as the median one."
        )
    cached = contender.speeds.get("cached")
    if source == "pipeline" and cached and cached.location.value_ns / speed.location.value_ns < INPUT_BOUND:
        less = percent(1 - cached.location.value_ns / speed.location.value_ns)
        sentence = f"The input pipeline limits the speed: {{a_step}} takes {less} less time with a cached batch."
        yield _warning("InputBound", subject, fill(sentence, comparison.task))


def _rounds(count: int) -> str:
    return "1 round was" if count == 1 else f"{count} rounds were"
