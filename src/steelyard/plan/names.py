"""Names for the cases of a group: one to type on the command line, and a title for tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.catalog import frameworks
from steelyard.plan.run_plan import FrameworkFacts, Variant
from steelyard_worker.case import Case
from steelyard_worker.strategy import MICRO_BATCHES, SINGLE, Spread, name_of

# Fields that are named only where nothing else tells groups apart; the least telling first.
SECONDARY = ("evaluation_limit", "train_steps", "rounds", "protocol", "seed", "task")


def groups(bases: Sequence[str], fields: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Name groups after their base, such as `resnet18:digits`, and after the fields in which groups of one base differ.

    Protocol, seed and task are part of a name only if nothing else tells the group from the others. Returns (name, suffix of the
    title): `resnet18:digits,batch=8` and `, batch 8`. The suffix has the preset where there are several of one workload.
    """
    found = []
    presets: dict[str, dict[str, None]] = {}
    for base in bases:
        workload, _, preset = base.partition(":")
        presets.setdefault(workload, {})[preset] = None
    for base, own in zip(bases, fields, strict=True):
        relatives = [each for other, each in zip(bases, fields, strict=True) if other == base]
        differing = [name for name in own if own[name] != "" and any(each.get(name) != own[name] for each in relatives)]
        for field in SECONDARY:
            left = [name for name in differing if name != field]
            if sum(all(each.get(name) == own[name] for name in left) for each in relatives) == 1:
                differing = left
        name = ",".join([base, *(f"{field}={own[field]}" for field in differing)])
        workload, _, preset = base.partition(":")
        words = [preset] if len(presets[workload]) > 1 else []
        words += [_words(field, own[field]) for field in differing]
        found.append((name, "".join(f", {each}" for each in words)))
    return found


def _words(field: str, value: Any) -> str:
    plain = field.replace("_", " ")
    if isinstance(value, bool):
        return plain if value else f"not {plain}"
    if field in ("optimizer", "task", "precision", "data"):
        return str(value)
    words = {"none": f"no {plain}", "largest": f"largest {plain}"}
    return words.get(value, f"{plain} {value}")


def variants(group: str, cases: Sequence[Case], facts: Mapping[str, FrameworkFacts]) -> tuple[Variant, ...]:
    """Name every case of a group.

    A name has the environment, the mode, every knob that is not at its default, and every other field in which cases of the
    group differ. A knob that a strategy sets is not named: the strategy is. A title has the framework, a requested version, a
    mode that is not the default, and of the rest only what distinguishes cases of one environment and mode. Both have a strategy
    with a number of parts, even where all cases have it.
    """
    return tuple(_variant(group, case, cases, facts[case.framework]) for case in cases)


def _variant(group: str, case: Case, cases: Sequence[Case], known: FrameworkFacts) -> Variant:
    relatives = [
        each for each in cases if (each.environment, each.settings.mode) == (case.environment, case.settings.mode)
    ]
    changed = [
        name
        for name, value in sorted(case.settings.knobs.items())
        if (value != known.knobs.get(name) and not _strategy_sets(name, case)) or _knob_differs(name, case, relatives)
    ]
    knobs = [f"{name}={case.settings.knobs[name]}" for name in changed]
    others = [f"{name}={value}" for name, value in _differing(case, cases).items()]
    name = ",".join([f"{case.environment}/{case.settings.mode}", *knobs, *others])
    settings = ", ".join(f"{knob} {case.settings.knobs[knob]}" for knob in changed)
    return Variant(group, name, _title(case, relatives, known), settings, case)


def _title(case: Case, relatives: Sequence[Case], known: FrameworkFacts) -> str:
    parts = [known.title if _of_strategy(case) else f"{known.title} {case.version}".strip()]
    if case.settings.mode != known.default_mode:
        parts.append(case.settings.mode)
    knobs = sorted(case.settings.knobs)
    parts += [f"{name} {case.settings.knobs[name]}" for name in knobs if _knob_differs(name, case, relatives)]
    differing = _differing(case, relatives)
    parts += [str(value) if name == "strategy" else f"{name} {value}" for name, value in differing.items()]
    return ", ".join(parts)


def _of_strategy(case: Case) -> bool:
    """Return whether the version of a case's environment follows from its strategy."""
    spread = _spread(case)
    return spread is not None and case.version == spread.environment


def _spread(case: Case) -> Spread | None:
    return frameworks.framework(case.framework).strategies.get(name_of(case.strategy))


def _fields(case: Case) -> dict[str, Any]:
    """Return the other fields that may vary in a group: {shown name: value}."""
    settings = case.settings
    return {
        "task": case.task,
        "batch": case.batch,
        "device": settings.device,
        "precision": settings.precision,
        "threads": settings.threads,
        "deterministic": settings.deterministic,
        "optimizer": case.optimizer.name,
        "learning rate": case.optimizer.schedule.summary,
        "implementation": case.optimizer.implementation,
        "strategy": case.strategy,
        "workers": case.loader_workers,
        "seed": case.seed,
    }


def _differing(case: Case, cases: Sequence[Case]) -> dict[str, Any]:
    """Return the fields in which other cases differ, and a strategy, which is always named: it changes what a result means."""
    others = [_fields(each) for each in cases]
    return {
        name: value
        for name, value in _fields(case).items()
        if (name == "strategy" and value != SINGLE) or any(each[name] != value for each in others)
    }


def _strategy_sets(name: str, case: Case) -> bool:
    spread = _spread(case)
    return spread is not None and name in spread.knobs


def _knob_differs(name: str, case: Case, cases: Sequence[Case]) -> bool:
    if name == MICRO_BATCHES:  # means nothing for the single process beside a pipeline
        cases = [each for each in cases if each.strategy == case.strategy]
    if _strategy_sets(name, case):
        return False
    cases = [each for each in cases if not _strategy_sets(name, each)]
    return any(each.settings.knobs.get(name) != case.settings.knobs[name] for each in cases)
