"""Which strategies of a framework are measured, and why one cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.errors import UserError, nearest
from steelyard.host import links, usable_cores, usable_nodes
from steelyard_worker import accumulation
from steelyard_worker.case import INFERENCE
from steelyard_worker.strategy import (
    MICRO_BATCHES,
    OWN_LAUNCHER,
    SINGLE,
    divisor_of,
    link_of,
    name_of,
    nodes_of,
    parts_of,
    without_hosts,
)
from steelyard_worker.strategy_kinds import ALONE, KINDS

if TYPE_CHECKING:
    from steelyard.catalog.frameworks import Framework
    from steelyard.plan.cells import Cells
    from steelyard_worker.case import Case, Settings
    from steelyard_worker.strategy import Spread


MOST_PARTS = 4096


def check(cells: Cells) -> None:
    """UserError: a strategy as it is typed, such as `ddp:2`, has no name or no number of parts."""
    for text in cells.strategies:
        name, _, parts = without_hosts(text).partition(":")
        if link := link_of(text):
            links.read(link)
        if "@" in text and not link and nodes_of(text) < 2:
            raise UserError(
                f"--strategy {text}: ranks on nodes of a cluster need at least two, such as {name}:2@2nodes."
            )
        if name == SINGLE and parts in ("", "1") and "@" not in text:
            continue
        if not name or name == SINGLE or not parts.isdecimal() or not 1 <= int(parts) <= MOST_PARTS:
            wanted = f"NAME:PARTS with 1 to {MOST_PARTS} parts, such as processes:2, or single, or single:1"
            raise UserError(f"--strategy {text}: write {wanted}.")


def strategies(cells: Cells, known: Framework) -> tuple[list[str], list[str]]:
    """Return the strategies that a framework has of those requested, and a reason for each that it lacks.

    The name of a kind, such as `processes:2`, stands for every strategy of that kind. UserError: no framework has such
    a strategy.
    """
    found: dict[str, None] = {}
    missing = []
    for text in cells.strategies or (SINGLE,):
        name, parts = name_of(text), text.partition(":")[2]
        own = _own(known, name)
        if not own and not _exists(name):
            raise UserError(
                f"No framework has a strategy '{name}'.{nearest(name, _names())} See: steelyard list strategies"
            )
        found |= dict.fromkeys(f"{each}:{parts}" if parts else each for each in own)
        if not own and name in KINDS:
            reason = f": {known.without[name].reason}" if name in known.without else "."
            missing.append(f"{known.title} has no strategy of the kind '{name}'{reason}")
    if not found and not missing:
        missing.append(f"{known.title} has none of the strategies {', '.join(cells.strategies)}.")
    return list(found), missing


def _own(known: Framework, name: str) -> list[str]:
    if name in (SINGLE, ALONE) or name in known.strategies:
        return [name]
    return [each for each, spread in known.strategies.items() if spread.kind == name]


def _exists(name: str) -> bool:
    return name in _names()


def _names() -> list[str]:
    own = (each for known in frameworks.all_frameworks().values() for each in known.strategies)
    return [*dict.fromkeys((SINGLE, ALONE, *KINDS, *own))]


def threads(cells: Cells) -> tuple[int, ...]:
    """Return the threads of each part where the study names none: as many as all parts together have cores."""
    most = max((parts_of(text) // nodes_of(text) for text in cells.strategies if ":" in text), default=1)
    pinned = any(":" in text for text in cells.strategies)
    return cells.threads or (max(1, usable_cores() // most) if pinned else usable_cores(),)


def version(known: Framework, strategy: str, requested: str) -> str:
    """Return the version of the environment that a case with a strategy runs in; empty: the usual one."""
    spread = known.spread(strategy)
    own = spread.environment if spread else ""
    return own if requested in ("", own.partition("+")[0]) and own else requested


def obstacle(known: Framework, case: Case, searches_batch: bool) -> str:
    """Return why a case cannot run with its strategy; empty if it can."""
    spread, parts, name = known.spread(case.strategy), parts_of(case.strategy), name_of(case.strategy)
    if reason := _knob_obstacle(known, case, spread):
        return reason
    if spread is None:
        return ""
    if known.exporters:
        return f"{known.title} has no strategies."
    if spread.environment and case.version != spread.environment:
        return (
            f"{name} of {known.title} needs the environment {known.name}@{spread.environment}, not {case.environment}."
        )
    if reason := _link_obstacle(known, case, spread):
        return reason
    if case.task == INFERENCE:
        return f"Strategies spread a training, so {case.strategy} cannot be used with inference."
    if searches_batch:
        return f"The largest batch is searched for in one process, not with {case.strategy}."
    if reason := spread.unsupported.get(case.settings.mode, ""):
        return f"{known.title} cannot run {name} in mode {case.settings.mode}: {reason}"
    if reason := spread.workloads.get(case.workload, ""):
        return f"{known.title} cannot run {case.workload} with {name}: {reason}"
    if case.batch % parts:
        return f"A batch of {case.batch} cannot be divided into {parts} equal shares. Choose another --batch."
    if case.batch % divisor_of(case.strategy, case.settings.knobs, spread.kind):
        count = case.settings.knobs[MICRO_BATCHES]
        return (
            f"A batch of {case.batch} cannot be divided into {count} micro-batches. Choose another --batch, or "
            f"--knob {case.framework}.{MICRO_BATCHES}=NUMBER."
        )
    return ""


def settled(known: Framework, settings: Settings, strategy: str, among: list[str]) -> Settings:
    """Return the settings of a strategy among several: micro-batches are for the pipelines, the others keep the default."""
    if MICRO_BATCHES not in known.knobs or _is_pipeline(known, strategy):
        return settings
    if not any(_is_pipeline(known, each) for each in among):
        return settings
    return replace(settings, knobs=settings.knobs | {MICRO_BATCHES: known.knobs[MICRO_BATCHES].default})


def _is_pipeline(known: Framework, strategy: str) -> bool:
    spread = known.spread(strategy)
    return spread is not None and spread.does.in_micro_batches


def _knob_obstacle(known: Framework, case: Case, spread: Spread | None) -> str:
    """Return why the value of a knob cannot be used with a strategy, or has no effect with it; empty otherwise."""
    own, name = case.settings.knobs, name_of(case.strategy)
    changed = {knob for knob, value in own.items() if value != known.knobs[knob].default}
    if MICRO_BATCHES in changed and not _is_pipeline(known, case.strategy):
        return f"{MICRO_BATCHES} has an effect in pipelines only, and {name} is none."
    if spread and accumulation.KNOB in changed:
        return f"Gradients of parts of a batch are added in one process, not with {name}. Remove --accumulate or the strategy."
    for knob, reason in spread.only_default.items() if spread else ():
        if knob in changed:
            return f"{known.title} cannot run {name} with {knob} = {own[knob]}: {reason}."
    return ""


def _link_obstacle(known: Framework, case: Case, spread: Spread) -> str:
    """Return why a case cannot run on several hosts; empty if it can, or runs on one."""
    if "@" not in case.strategy:
        return ""
    nodes = nodes_of(case.strategy)
    if not spread.several_processes:
        return f"{name_of(case.strategy)} of {known.title} is one process, so it has no hosts to connect."
    on_every_host = spread.launcher.split("+")[0] == OWN_LAUNCHER or "{host}" in spread.launcher
    where = "nodes" if nodes > 1 else "hosts"
    if not on_every_host and (nodes > 1 or not spread.across_hosts):
        return f"The launcher of {name_of(case.strategy)} starts ranks on other {where} by ssh, which steelyard does not set up."
    if parts_of(case.strategy) % (nodes if nodes > 1 else 2):
        hosts = f"{nodes} nodes" if nodes > 1 else "two hosts"
        return f"{case.strategy} has {parts_of(case.strategy)} ranks, which {hosts} cannot share equally."
    return _nodes_obstacle(case.strategy, nodes) if nodes > 1 else links.obstacle()


def _nodes_obstacle(strategy: str, wanted: int) -> str:
    there = usable_nodes()
    if not there:
        return (
            f"{strategy} needs {wanted} nodes of a cluster: name one with --on. On this machine, {without_hosts(strategy)}@1gbit "
            "has two hosts with a link between them."
        )
    if there < wanted:
        return (
            f"{strategy} needs {wanted} equal nodes at the same time, and the cluster has {there}. See: steelyard nodes"
        )
    return ""
