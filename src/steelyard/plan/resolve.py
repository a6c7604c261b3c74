"""Options -> plan: which cells, in which groups, by which protocol. Pure: nothing is created, nothing is run."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks, workloads
from steelyard.errors import UserError, nearest
from steelyard.plan import protocols, studies
from steelyard.plan.cells import Cell
from steelyard_worker.protocol import Settings

if TYPE_CHECKING:
    from steelyard.catalog.frameworks import Framework
    from steelyard.catalog.workloads import Preset, Workload
    from steelyard.plan.options import Options
    from steelyard.plan.protocols import Protocol
    from steelyard.plan.studies import Study


@dataclass(frozen=True)
class Gap:
    """A cell that cannot be measured, and why."""

    group: str
    environment: str
    reason: str


@dataclass(frozen=True)
class RunPlan:
    """Everything a run will do, before it does anything."""

    options: Options
    study: Study
    protocol: Protocol
    cells: tuple[Cell, ...]
    gaps: tuple[Gap, ...]
    workloads: dict[str, Workload]

    @property
    def groups(self) -> dict[str, list[Cell]]:
        """Cells by group, in the order asked for."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.group, []).append(cell)
        return found

    @property
    def environments(self) -> list[str]:
        """Names of the environments that the cells need."""
        return list(dict.fromkeys(cell.environment for cell in self.cells))

    def preset(self, group: str) -> tuple[Workload, Preset]:
        """Return the workload and preset of a group."""
        name, _, preset = group.partition(":")
        return self.workloads[name], _adapted(self.workloads[name].preset(preset), self.options)

    def without(self, failed: dict[str, str]) -> RunPlan:
        """Leave out the cells of environments that could not be made; each becomes a gap with its reason."""
        gaps = tuple(Gap(c.group, c.environment, failed[c.environment]) for c in self.cells if c.environment in failed)
        cells = tuple(cell for cell in self.cells if cell.environment not in failed)
        return replace(self, cells=cells, gaps=self.gaps + gaps)


def plan(options: Options) -> RunPlan:
    """Resolve names, refuse what is unknown, and cross workloads with environments, modes and knobs."""
    study = studies.study(options.study)
    protocol = protocols.protocol(options.protocol or study.protocol, options.rounds)
    known = workloads.find(tuple(Path(folder) for folder in options.workload_folders))
    groups = [_group(known, text, options) for text in options.workloads or study.workloads]
    names = _environment_names(options.frameworks or study.frameworks)
    _check_addressed(options, names)
    cells: list[Cell] = []
    gaps: list[Gap] = []
    for (workload, preset), name in itertools.product(groups, names):
        reason = _gap(options, workload, protocol, preset, name)
        if reason:
            gaps.append(Gap(f"{workload.name}:{preset.name}", name, reason))
        else:
            cells += _cells(options, workload, preset, name)
    if not cells:
        raise UserError("Nothing is left to measure: " + " ".join(gap.reason for gap in gaps))
    if options.workloads:
        study = studies.chosen(
            study, [workload.title for workload, _ in groups], [workload.name for workload, _ in groups]
        )
    once = tuple({cell.key: cell for cell in cells}.values())  # what is named twice is measured once
    return RunPlan(options, study, protocol, once, tuple(dict.fromkeys(gaps)), known)


def threads_of(options: Options) -> int:
    """Return the threads each framework is given: one per core that this process may use, unless told otherwise."""
    return len(os.sched_getaffinity(0)) if options.threads is None else options.threads


def _group(known: dict[str, Workload], text: str, options: Options) -> tuple[Workload, Preset]:
    name, _, preset = text.partition(":")
    if name not in known:
        raise UserError(f"There is no workload '{name}'.{nearest(name, list(known))}")
    return known[name], _adapted(known[name].preset(preset or next(iter(known[name].presets))), options)


def _adapted(preset: Preset, options: Options) -> Preset:
    """Return the preset at the batch asked for, and without its data where made-up batches were."""
    sizes = {**preset.sizes, "batch": options.batch} if options.batch else preset.sizes
    return replace(preset, sizes=sizes, data={} if options.synthetic else preset.data)


def _environment_names(asked: tuple[str, ...]) -> list[str]:
    names = [name for text in asked for name in (list(frameworks.contenders()) if text == "*" else [text])]
    for name in names:
        frameworks.framework(name.partition("@")[0])
    return list(dict.fromkeys(names))


def _check_addressed(options: Options, names: list[str]) -> None:
    """Refuse a mode, knob or interpreter that is meant for nobody who takes part."""
    for text in options.modes:
        if "=" not in text:
            raise UserError(f"'{text}' names no mode: write FRAMEWORK=MODE, such as {names[0]}={text}.")
    knobs = [text.partition("=")[0].rpartition(".") for text in options.knobs]
    addressed = [text.partition("=")[0] for text in options.modes] + [name for name, dot, _ in knobs if dot]
    taking_part = {*names, *(name.partition("@")[0] for name in names)}
    for name in addressed:
        if name not in taking_part:
            raise UserError(f"'{name}' takes no part in this run.{nearest(name, names)}")
    for name in options.external:
        if name not in names:
            raise UserError(f"--env {name}: '{name}' takes no part in this run.{nearest(name, names)}")
    offered = {knob for name in taking_part if "@" not in name for knob in frameworks.framework(name).knobs}
    for _, dot, knob in knobs:
        if not dot and knob not in offered:
            raise UserError(f"No framework of this run has a knob '{knob}'.{nearest(knob, sorted(offered))}")


def _gap(options: Options, workload: Workload, protocol: Protocol, preset: Preset, name: str) -> str:
    known = frameworks.framework(name.partition("@")[0])
    if obstacle := workload.obstacle(known.name, options.precision):
        which = "" if known.name in workload.unsupported else f" in {options.precision}"
        return f"{known.title} cannot run {workload.name}{which}: {obstacle}"
    if not workload.implemented_by(known.name):
        return f"{known.title} has no implementation of {workload.name} (no {known.name}.py in its folder)."
    for wanted in (options.device, options.precision):
        if wanted in known.unsupported:
            return f"{known.title} cannot run on {wanted}: {known.unsupported[wanted]}"
    if options.device not in known.devices:
        return f"{known.title} has no device '{options.device}' (it has {', '.join(known.devices)})."
    if options.precision not in known.precisions:
        return f"{known.title} has no precision '{options.precision}' (it has {', '.join(known.precisions)})."
    if not preset.data and "cached" not in protocol.plan.inputs:
        return (
            f"Preset {workload.name}:{preset.name} has synthetic batches only, and protocol {protocol.name} needs data."
        )
    return ""


def _cells(options: Options, workload: Workload, preset: Preset, name: str) -> list[Cell]:
    known = frameworks.framework(name.partition("@")[0])
    rule = replace(
        workload.optimizer(preset, options.optimizer or None), implementation=options.optimizer_implementation
    )
    settings = Settings(
        mode=known.default_mode, device=options.device, threads=threads_of(options), precision=options.precision,
        deterministic=options.deterministic,
    )  # fmt: skip
    return [
        Cell(workload.name, preset.name, name, replace(settings, mode=mode, knobs=knobs), rule)
        for mode, knobs in itertools.product(_modes(options, known, name), _knobs(options, known, name))
    ]


def _modes(options: Options, known: Framework, name: str) -> list[str]:
    wanted: list[str] = []
    for text in options.modes:
        addressed, _, listed = text.partition("=")
        if addressed in (name, known.name):
            wanted += [known.mode(mode) for mode in listed.split(",")]
    return wanted or [known.default_mode]


def _knobs(options: Options, known: Framework, name: str) -> list[dict[str, Any]]:
    """Return every combination of the values given; knobs that are not mentioned stay at their defaults."""
    values: dict[str, list[Any]] = {}
    for text in options.knobs:
        path, equals, listed = text.partition("=")
        if not equals:
            raise UserError(f"'{text}' is no setting: write FRAMEWORK.KNOB=VALUE or KNOB=VALUE.")
        addressed, _, knob = path.rpartition(".")
        if addressed in ("", name, known.name) and (addressed or knob in known.knobs):
            values[knob] = [known.knob(knob, value) for value in listed.split(",")]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
