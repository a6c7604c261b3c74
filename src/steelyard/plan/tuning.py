"""Which settings of one framework a search tries, in which order, and the plan of a run that searches before it measures."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import Framework
from steelyard.errors import UserError, named
from steelyard.plan import names, protocols
from steelyard.plan.run_plan import Group, RunPlan, Search, Variant
from steelyard.published.gathering import Published
from steelyard_worker.case import Case

MODE = "mode"
"""The name of the axis of modes; the others are knobs."""
SEARCH_SHARE = 0.6
"""The share of the time limit for the search; the rest is for the rounds."""
MOST_COMBINATIONS = 500
"""The most candidates; no search has time for more."""


def plan(
    known: RunPlan,
    run: str,
    group: Group,
    environment: str,
    rival: Variant | None,
    minutes: float,
    modes: Sequence[str] = (),
    knobs: Sequence[str] = (),
) -> RunPlan:
    """Return the plan of a run that tunes one framework of a group of an earlier run.

    `known` is the plan of that run, and `run` its name. `rival`: the contender that the tuned one is measured against, besides
    itself with its usual settings. `modes` and `knobs` are what is tried, as typed (`eager,compiled`, `layout=a,b`); without any,
    all modes and the knobs that matter for the network. UserError: there is nothing to try, or no time per step to improve.
    """
    if not group.protocol.sequential:
        raise UserError(
            f"{group.name} was measured with protocol {group.protocol.name}, which fixes how a run is measured. Settings are "
            "tried with the sequential protocol: measure that first, with steelyard run --protocol sequential."
        )
    first = next(each.case for each in group.variants if each.case.environment == environment)
    framework = frameworks.framework(first.framework)
    base = replace(first, settings=framework.complete(replace(first.settings, mode=framework.default_mode, knobs={})))
    axes = _asked(framework, modes, knobs) if modes or knobs else _usual(framework, known, base)
    axes = {name: _with_first(values, _value(base, name)) for name, values in axes.items()}
    search = Search(environment, {name: tuple(values) for name, values in axes.items()}, SEARCH_SHARE * minutes, run)
    if len(list(itertools.islice(candidates(search, base, known), 2))) < 2:
        raise UserError(
            f"{framework.title} has no other mode and no knob that could make {group.name} faster. Name what to try with --mode "
            "or --knob."
        )
    title = f"Settings of {known.title(base)}"
    study = replace(
        known.study,
        name=f"tune-{framework.name}",
        title=f"{title}: {group.title}",
        sizes={},
        minutes=0.0,
        profiles=0,
        published=(),
        thresholds=(),
        question=f"Which settings of {framework.title} are the fastest here, and what do they bring?",
    )
    options = replace(
        known.options, study="", size="", rounds="", minutes=(1 - SEARCH_SHARE) * minutes, profiles=None, thresholds=()
    )
    # As many rounds as the verdicts need, whatever the earlier run was allowed.
    group = replace(group, protocol=protocols.protocol(group.protocol.name))
    found = replace(
        known, options=options, study=study, groups=(group,), skipped=(), published=Published(), search=search
    )
    return with_cases(found, [base, *([rival.case] if rival else [])])


def with_cases(known: RunPlan, cases: Iterable[Case]) -> RunPlan:
    """Return the plan with these cases in its only group, and names that tell them apart."""
    (group,) = known.groups
    variants = names.variants(group.name, list(cases), known.frameworks)
    return replace(known, groups=(replace(group, variants=variants),))


def ended(known: RunPlan) -> RunPlan:
    """Return the plan after its search: its only group has what was chosen."""
    assert known.search
    return replace(known, search=replace(known.search, ended=True))


def candidates(search: Search, base: Case, known: RunPlan) -> Iterator[Case]:
    """Yield the cases of a search in the order in which they should be tried, each once.

    First the usual settings, then those with one change, mode by mode and knob by knob, and then combinations in random order.
    Those that the framework cannot run, or with which it would compute something else, are left out.
    """
    seen, able = set[str](), _can_run(known, base)
    changes = [
        {},
        *({name: value} for name, values in search.axes.items() for value in values[1:]),
        *_combinations(search.axes, base.seed),
    ]
    for change in changes:
        case = changed(base, change)
        if case.id not in seen and able(case):
            seen.add(case.id)
            yield case


def changed(case: Case, settings: Mapping[str, Any]) -> Case:
    """Return a case with other settings: {`mode` or a knob: value}."""
    knobs = case.settings.knobs | {name: value for name, value in settings.items() if name != MODE}
    mode = settings.get(MODE, case.settings.mode)
    chosen = frameworks.framework(case.framework).complete(replace(case.settings, mode=mode, knobs=knobs))
    return replace(case, settings=chosen)


def joined(search: Search, base: Case, costs: Mapping[str, float], known: RunPlan) -> Case | None:
    """Return the case with the best value of every axis, of those that were tried alone and were faster than usual.

    `costs`: case id -> time per step. None: fewer than two were faster, or together they cannot run.
    """
    usual = costs.get(base.id, math.inf)
    better = dict[str, Any]()
    for name, values in search.axes.items():
        tried = {value: costs.get(changed(base, {name: value}).id, math.inf) for value in values[1:]}
        best = min(tried, key=lambda value: tried[value], default=None)
        if best is not None and tried[best] < usual:
            better[name] = best
    case = changed(base, better)
    return case if len(better) > 1 and _can_run(known, base)(case) else None


def _combinations(axes: Mapping[str, Sequence[Any]], seed: int) -> Iterator[dict[str, Any]]:
    sizes = [len(values) for values in axes.values()]
    count = math.prod(sizes)
    for number in Random(seed).sample(range(count), min(count, MOST_COMBINATIONS)):
        found, rest = {}, number
        for name, values in axes.items():
            rest, place = divmod(rest, len(values))
            found[name] = values[place]
        yield found


def _can_run(known: RunPlan, base: Case) -> Callable[[Case], bool]:
    """Return a test of a case with other settings than this one: whether it can run, and compute what this one computes."""
    framework = frameworks.framework(base.framework)
    workload = workloads.parse(Path(known.workload_folders[base.workload]) / "spec.toml")

    def able(case: Case) -> bool:
        settings, rule = case.settings, case.optimizer
        return not (
            framework.obstacle(settings, rule)
            or workload.obstacle(framework.name, settings.mode)
            or any(framework.otherwise(settings, rule))
            or framework.apart(settings, rule)
        )

    return able


def _usual(framework: Framework, known: RunPlan, base: Case) -> dict[str, list[Any]]:
    """Return every mode, and the knobs that matter for the tensors of the network."""
    network = workloads.described(Path(known.workload_folders[base.workload]), base.sizes)
    kinds = {each.kind for each in network.parameters}
    # A runtime of exported networks has one mode for each framework that exports them, and another network in each.
    axes = {} if framework.exporters else {MODE: list(framework.modes)}
    return axes | {name: list(knob.values) for name, knob in framework.knobs.items() if knob.matters(kinds)}


def _asked(framework: Framework, modes: Sequence[str], knobs: Sequence[str]) -> dict[str, list[Any]]:
    axes: dict[str, list[Any]] = {}
    for text in modes:
        axes.setdefault(MODE, []).extend(framework.mode(mode) for mode in _own(framework, text, "--mode").split(","))
    for text in knobs:
        name, equals, values = _own(framework, text, "--knob").partition("=")
        if not equals:
            raise UserError(f"--knob {text}: write KNOB=VALUE,VALUE.")
        axes.setdefault(name, []).extend(framework.knob(name, value) for value in values.split(","))
    return axes


def _own(framework: Framework, text: str, option: str) -> str:
    """Return an option's text without the name of the framework; UserError: it names another one."""
    separator = "=" if option == "--mode" else "."
    head, found, rest = text.partition(separator)
    if not found or "=" in head:
        return text
    if head.partition("@")[0] != framework.name:
        raise UserError(f"{option} {text}: '{head}' is not tuned; this search is about {framework.title} alone.")
    return rest


def _value(case: Case, name: str) -> Any:
    if name == MODE:
        return case.settings.mode
    return case.settings.knobs.get(name, frameworks.framework(case.framework).knobs[name].default)


def _with_first(values: Iterable[Any], first: Any) -> list[Any]:
    """Return the values, each once, with this one at the front."""
    return list(dict.fromkeys([first, *values]))


def chosen_group(known: RunPlan, name: str, environment: str, run: str) -> Group:
    """Return the group of a run that has an environment. `name`: of the group, or its workload. UserError: none, or several."""
    groups = {each.name: each for each in known.groups}
    if name:
        matching = [each for each in groups.values() if name in (each.name, each.cases[0].workload)]
        groups = {each.name: each for each in matching} or {
            name: named(groups, name, f"Run {run} has no group '{name}'.")
        }
    able = {each.name: each for each in groups.values() if environment in {case.environment for case in each.cases}}
    if not able:
        found = sorted({case.environment for each in groups.values() for case in each.cases})
        named(dict.fromkeys(found), environment, f"Run {run} has no result of '{environment}' to start from.")
    if len(able) > 1:
        raise UserError(
            f"Run {run} has several groups with {environment}: {', '.join(able)}. Choose one with --workload."
        )
    return next(iter(able.values()))
