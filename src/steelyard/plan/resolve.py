"""Turn options into a plan: its cases, their groups and the protocol. Nothing is created or run here."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import Framework
from steelyard.catalog.workloads import Preset, Workload
from steelyard.errors import UserError, named, nearest
from steelyard.host import usable_cores
from steelyard.plan import names, protocols, studies
from steelyard.plan.options import Options
from steelyard.plan.protocols import Protocol
from steelyard.plan.run_plan import FrameworkFacts, Group, RunPlan, Skipped
from steelyard_worker.case import Case, Settings


def plan(options: Options) -> RunPlan:
    """Resolve all names and combine workloads with environments, modes and knobs. UserError: an unknown name."""
    frameworks.use(options.framework_folders)
    study = studies.study(options.study)
    protocol = protocols.protocol(options.protocol or study.protocol, options.rounds)
    known = workloads.find(options.workload_folders)
    chosen = [_chosen(known, text, options) for text in options.workloads or study.workloads]
    environments = _environments(options.frameworks or study.frameworks)
    _check_targets(options, environments)
    _check_data(options, chosen)
    facts = {name: _facts(frameworks.framework(name)) for name in dict.fromkeys(name for name, _ in environments)}
    groups: dict[str, Group] = {}
    skipped: list[Skipped] = []
    for workload, preset in chosen:
        group, left_out = _group(options, workload, preset, environments, protocol, facts)
        skipped += left_out
        if group.variants:
            groups[group.name] = group
    if not groups:
        raise UserError("There is nothing to measure: " + " ".join(each.reason for each in skipped))
    if options.workloads:
        study = studies.chosen(study, [workload for workload, _ in chosen])
    folders = {workload.name: str(workload.folder) for workload, _ in chosen}
    hashes = {name: frameworks.files_hash(Path(folder)) for name, folder in folders.items()}
    return RunPlan(
        options, study, protocol, tuple(groups.values()), tuple(dict.fromkeys(skipped)), facts, folders, hashes,
        _user_framework_hashes(),
    )  # fmt: skip


def changed_files(plan: RunPlan) -> list[str]:
    """Return the workloads and the user's frameworks of a stored plan whose files have changed or are gone."""
    workloads_now = {name: frameworks.files_hash(Path(folder)) for name, folder in plan.workload_folders.items()}
    pairs = ((plan.workload_hashes, workloads_now), (plan.framework_hashes, _user_framework_hashes()))
    return [name for before, now in pairs for name in before if now.get(name) != before[name]]


def _user_framework_hashes() -> dict[str, str]:
    """Return the hashes of all frameworks of the user's own: one that is not in the run may be a reference."""
    own = {name: known.folder for name, known in frameworks.all_frameworks().items() if known.user_folder}
    return {name: frameworks.files_hash(folder) for name, folder in own.items()}


def _chosen(known: dict[str, Workload], text: str, options: Options) -> tuple[Workload, Preset]:
    """Read `workload` or `workload:preset`, at the requested batch and with or without its data."""
    name, _, requested = text.partition(":")
    workload = named(known, name, f"There is no workload '{name}'.")
    preset = workload.preset(requested or next(iter(workload.presets)))
    sizes = {**preset.sizes, "batch": options.batch} if options.batch else preset.sizes
    return workload, replace(preset, sizes=sizes, data={} if options.synthetic else preset.data)


def _environments(requested: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read `framework`, `framework@version` or `*` for all; returns (framework, version) pairs."""
    texts = [each for text in requested for each in (list(frameworks.contenders()) if text == "*" else [text])]
    found = [(framework, version) for framework, _, version in (text.partition("@") for text in texts)]
    for framework, _ in found:
        frameworks.framework(framework)
    return list(dict.fromkeys(found))


def _check_targets(options: Options, environments: list[tuple[str, str]]) -> None:
    """Reject a mode, knob or interpreter for a framework that is not in this run."""
    present = {name for pair in environments for name in (pair[0], _joined(pair))}
    own = [_joined(pair) for pair in environments]
    for text in options.modes:
        if "=" not in text:
            raise UserError(f"--mode {text}: write FRAMEWORK=MODE, such as {own[0]}={text}.")
    knobs = [text.partition("=")[0].rpartition(".") for text in options.knobs]
    targets = [text.partition("=")[0] for text in options.modes] + [name for name, dot, _ in knobs if dot]
    for name in targets:
        if name not in present:
            raise UserError(f"'{name}' is not in this run.{nearest(name, own)}")
    for name in options.external:
        if name not in own:
            raise UserError(f"--env {name}: '{name}' is not in this run.{nearest(name, own)}")
    offered = {knob for framework, _ in environments for knob in frameworks.framework(framework).knobs}
    for _, dot, knob in knobs:
        if not dot and knob not in offered:
            raise UserError(f"No framework of this run has a knob '{knob}'.{nearest(knob, sorted(offered))}")


def _check_data(options: Options, chosen: list[tuple[Workload, Preset]]) -> None:
    """Reject a folder of data that no preset of this run would read."""
    if not options.data or any(preset.data for _, preset in chosen):
        return
    if options.synthetic:
        raise UserError(
            "--data and --synthetic contradict each other: random batches need no data. Remove one of them."
        )
    reading = [f"{each.name}:{name}" for each, _ in chosen for name in each.presets if each.preset(name).data]
    hint = f"Presets that read data: {', '.join(reading)}." if reading else "Remove --data."
    names = " and ".join(f"{workload.name}:{preset.name}" for workload, preset in chosen)
    raise UserError(f"--data has no effect, because {names} computes on random batches. {hint}")


def _joined(environment: tuple[str, str]) -> str:
    framework, version = environment
    return f"{framework}@{version}" if version else framework


def _facts(known: Framework) -> FrameworkFacts:
    knobs = {name: knob.default for name, knob in known.knobs.items()}
    return FrameworkFacts(known.title, known.default_mode, knobs, known.maintained, known.note)


def _group(
    options: Options, workload: Workload, preset: Preset, environments: list[tuple[str, str]], protocol: Protocol,
    facts: dict[str, FrameworkFacts],
) -> tuple[Group, list[Skipped]]:  # fmt: skip
    """Return a group with a case for every environment that can run it, and the environments that cannot."""
    name, network = f"{workload.name}:{preset.name}", workload.network(preset)
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for framework, version in environments:
        if reason := _obstacle(options, workload, protocol, preset, framework):
            title = f"{facts[framework].title} {version}".strip()
            skipped.append(Skipped(name, _joined((framework, version)), title, reason))
        else:
            cases += _cases(options, workload, preset, framework, version)
    able = [each for each in frameworks.all_frameworks() if workload.implemented_by(each)]
    distinct = list({case.id: case for case in cases}.values())  # a case that is requested twice is measured once
    group = Group(
        name=name, title=workload.title, unit=workload.unit, metric=workload.metric, summary=preset.summary,
        parameters=network.trainable_count, training_flops=network.training_flops, implemented_by=tuple(able),
        float64=tuple(each for each in able if not workload.obstacle(each, "float64")),
        variants=names.variants(name, distinct, facts),
    )  # fmt: skip
    return group, skipped


def _obstacle(options: Options, workload: Workload, protocol: Protocol, preset: Preset, framework: str) -> str:
    """Return why a framework cannot run a preset as requested; empty if it can."""
    known = frameworks.framework(framework)
    if obstacle := workload.obstacle(known.name, options.precision):
        which = "" if known.name in workload.unsupported else f" in {options.precision}"
        return f"{known.title} cannot run {workload.name}{which}: {obstacle}"
    if not workload.implemented_by(known.name):
        own = f", no workloads/{workload.name}.py in {known.user_folder}" if known.user_folder else ""
        missing = f"there is no {known.name}.py in its folder{own}"
        return f"{known.title} has no implementation of {workload.name} ({missing})."
    for requested in (options.device, options.precision):
        if requested in known.unsupported:
            return f"{known.title} cannot run with {requested}: {known.unsupported[requested]}"
    if options.device not in known.devices:
        return f"{known.title} has no device '{options.device}' (it has {', '.join(known.devices)})."
    if options.precision not in known.precisions:
        return f"{known.title} has no precision '{options.precision}' (it has {', '.join(known.precisions)})."
    if not preset.data and "cached" not in protocol.schedule.inputs:
        return f"Preset {workload.name}:{preset.name} has no data set, and protocol {protocol.name} needs one."
    return ""


def _cases(options: Options, workload: Workload, preset: Preset, framework: str, version: str) -> list[Case]:
    known = frameworks.framework(framework)
    optimizer = workload.optimizer(preset, options.optimizer or None)
    threads = usable_cores() if options.threads is None else options.threads
    settings = Settings(known.default_mode, options.device, threads, options.precision, options.deterministic)
    first = Case(
        workload=workload.name, preset=preset.name, sizes=preset.sizes, data=preset.data,
        specification=workload.specification(preset),
        optimizer=replace(optimizer, implementation=options.optimizer_implementation), framework=framework,
        version=version, settings=settings, seed=options.seed, loader_workers=options.loader_workers,
    )  # fmt: skip
    targets = {framework, _joined((framework, version))}
    return [
        replace(first, settings=known.complete(replace(settings, mode=mode, knobs=knobs)))
        for mode, knobs in itertools.product(_modes(options, known, targets), _knobs(options, known, targets))
    ]


def _modes(options: Options, known: Framework, targets: set[str]) -> list[str]:
    requested: list[str] = []
    for text in options.modes:
        name, _, listed = text.partition("=")
        if name in targets:
            requested += [known.mode(mode) for mode in listed.split(",")]
    return requested or [known.default_mode]


def _knobs(options: Options, known: Framework, targets: set[str]) -> list[dict[str, Any]]:
    """Return every combination of the requested values; the other knobs stay at their defaults."""
    values: dict[str, list[Any]] = {}
    for text in options.knobs:
        path, equals, listed = text.partition("=")
        if not equals:
            raise UserError(f"--knob {text}: write FRAMEWORK.KNOB=VALUE or KNOB=VALUE.")
        name, _, knob = path.rpartition(".")
        if name in targets or (not name and knob in known.knobs):
            values[knob] = [known.knob(knob, value) for value in listed.split(",")]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
