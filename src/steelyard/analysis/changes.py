"""The differences between two contenders apart from their results: machine, packages, settings, and classes of operations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.analysis.model import Contender, View
from steelyard.analysis.where_time_goes import COSTLY
from steelyard.profiles import waterfall
from steelyard.profiles.recorded import Explained
from steelyard.results.quantities import Quantity
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.sentences import listed
from steelyard.wording import notation
from steelyard.wording.task_words import fill

RUN, MACHINE, PACKAGE, LIBRARY, SETTING = "run", "machine", "package", "library", "setting"
COMMON, OWN = (RUN, MACHINE), (PACKAGE, LIBRARY, SETTING)
"""The kinds of facts that all contenders of a run share, and the kinds that belong to one contender."""
HEADINGS = {
    RUN: "Runs",
    MACHINE: "Machine",
    PACKAGE: "Packages",
    LIBRARY: "Libraries, by the framework's account",
    SETTING: "Settings as read back",
}
MOST_NAMES = 12  # of facts of one kind in a sentence
LONGEST_VALUE = 60  # characters in a sentence
EXPLAINED = ("step time", "throughput")
"""The quantities whose change the classes of operations explain."""

Facts = dict[tuple[str, str], Any]
"""The recorded facts about a contender and its machine: {kind: {name: value}}."""


@dataclass(frozen=True)
class Difference:
    """One recorded fact that differs between A and B; None where a side lacks the fact. `kind`: a key of HEADINGS.

    If the fact is a list, `a` and `b` are the elements that the other side lacks.
    """

    kind: str
    name: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Moved:
    """One class of operations: nanoseconds of a profiled step in A and in B."""

    kind: str
    a_ns: float
    b_ns: float


@dataclass(frozen=True)
class Cause:
    """The classes of operations whose times differ between A and B, in their usual order; empty where no profile tells.

    `sentence` names the classes that matter and the reasons for doubt, or says why nothing is known.
    """

    classes: tuple[Moved, ...] = ()
    sentence: str = ""


def differences(a: tuple[View, Contender], b: tuple[View, Contender]) -> tuple[Difference, ...]:
    """Return every recorded fact that differs between two contenders."""
    return _differing({**_of_run(a[0]), **_of_contender(*a)}, {**_of_run(b[0]), **_of_contender(*b)})


def machines(a: View, b: View) -> tuple[Difference, ...]:
    """Return the facts in which the machines of two runs differ."""
    return tuple(each for each in _differing(_of_run(a), _of_run(b)) if each.kind == MACHINE)


def _differing(left: Facts, right: Facts) -> tuple[Difference, ...]:
    return tuple(
        Difference(*key, *_only(left.get(key), right.get(key)))
        for key in sorted(left.keys() | right.keys(), key=lambda key: (list(HEADINGS).index(key[0]), key[1]))
        if left.get(key) != right.get(key)
    )


def sentences(found: Sequence[Difference], kinds: Sequence[str]) -> list[str]:
    """Return one sentence for every kind that has differences, from B to A."""
    said_of = []
    for kind in kinds:
        names = [change(each) for each in found if each.kind == kind]
        more = f" and {len(names) - MOST_NAMES} more (--json lists all)" if len(names) > MOST_NAMES else ""
        if names:
            said_of.append(f"{HEADINGS[kind]}: {', '.join(names[:MOST_NAMES])}{more}.")
    return said_of


def change(found: Difference) -> str:
    """Return a difference in a few words, from B to A."""
    texts = [_text(each) for each in (found.b, found.a)]
    if max(map(len, texts)) > LONGEST_VALUE:
        return f"{found.name} (--json has both texts)"
    return f"{found.name} {texts[0]} -> {texts[1]}"


def cause(
    before: tuple[View, Contender], after: tuple[View, Contender], quantity: Quantity, source: str, ratio: Ratio | None
) -> Cause:
    """Return which classes of operations changed between two runs of a contender. `ratio`: measured, after over before."""
    if quantity.name not in EXPLAINED:
        return Cause()
    missing = [(view, each) for view, each in (before, after) if not each.profile]
    if missing:
        return Cause(sentence=_not_known(missing))
    old, new = before[1].profile, after[1].profile
    assert old and new
    if source not in old.trial.job.schedule.inputs or source not in new.trial.job.schedule.inputs:
        return Cause()
    falls = waterfall.waterfall(old.breakdown.classes, new.breakdown.classes)
    moved = tuple(Moved(each.kind, each.second_ns, each.first_ns) for each in falls)
    causes = [
        f"{each.kind} {notation.duration(each.first_ns)} -> {notation.duration(each.second_ns)}"
        for each in waterfall.largest(falls)
    ]
    steps = [notation.duration(each.breakdown.step_ns) for each in (old, new)]
    sentence = (
        f"{fill('Profiled {step}', after[1].case.task)} {steps[0]} -> {steps[1]}: {listed(causes) or 'no class moved'}."
    )
    same_machine = before[0].record.machine == after[0].record.machine
    doubts = _doubts(old, new, same_machine, _of_times(quantity, ratio)) if causes else ()
    return Cause(moved, " ".join((sentence, *doubts)))


def _of_run(view: View) -> Facts:
    known = view.record
    facts = {name: value for name, value in _flat(known.host) if not name.startswith("unknown")}
    if "memory bytes" in facts:  # virtual machines get slightly different memory at each start
        facts["memory bytes"] = round(facts["memory bytes"] / 2**30) * 2**30
    return {
        (RUN, "steelyard"): known.steelyard,
        (RUN, "method of measuring"): known.method,
        (RUN, "measuring code"): known.worker_hash,
        **{(MACHINE, name): value for name, value in facts.items()},
    }


def _of_contender(view: View, contender: Contender) -> Facts:
    environment = view.record.environments.get(contender.case.environment)
    packages = {"Python": environment["python_version"], **environment["packages"]} if environment else {}
    return {
        **{(PACKAGE, name): value for name, value in packages.items()},
        **{(LIBRARY, name): value for name, value in _flat(contender.libraries) if name not in packages},
        **{(SETTING, name): value for name, value in _flat(contender.applied)},
    }


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, dict):
            yield from _flat(value, f"{path} ")
        else:
            yield path, value


def _only(a: Any, b: Any) -> tuple[Any, Any]:
    if isinstance(a, list) and isinstance(b, list):
        return [each for each in a if each not in b], [each for each in b if each not in a]
    return a, b


def _text(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _not_known(missing: Sequence[tuple[View, Contender]]) -> str:
    failed = [
        f"{each.title} could not be profiled in run {view.name}: {each.not_profiled}"
        for view, each in missing
        if each.not_profiled
    ]
    if failed:
        return " ".join(failed)
    commands = " and ".join(f"steelyard explain --run {view.name}" for view, _ in missing)
    return f"Profiles tell which class of operations changed; those that are missing are taken with: {commands}"


def _of_times(quantity: Quantity, ratio: Ratio | None) -> tuple[float, float] | None:
    """Return the interval of the ratio of times, after / before."""
    if ratio is None:
        return None
    return (1 / ratio.high, 1 / ratio.low) if quantity.more_is_better else (ratio.low, ratio.high)


def _doubts(old: Explained, new: Explained, same_machine: bool, measured: tuple[float, float] | None) -> Iterator[str]:
    """Yield reasons why two profiles may not explain the measured change. `measured`: interval of the ratio after / before."""
    if not same_machine:
        yield "The profiles are of different machines, so the difference may be that of the machines."
    slowed = [
        f"{each.breakdown.slow_down:.2f}x {when}"
        for each, when in ((old, "before"), (new, "after"))
        if each.breakdown.slow_down > COSTLY
    ]
    if slowed:
        yield f"The profiler slowed this down ({listed(slowed)}), so these are parts of the profiled time."
    change = new.breakdown.step_ns - old.breakdown.step_ns
    if not measured:
        yield "There is no measured interval beside it, so this may be chance."
    elif measured[0] <= 1 <= measured[1]:
        yield "No change was detected by the measurement, so this may be chance."
    elif (measured[0] > 1) != (change > 0):
        yield "The measurement found a change in the other direction, so this does not explain it."
