"""Combine the axes of cells into groups of cases. What cannot be measured is skipped with its reason."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import Framework
from steelyard.catalog.workloads import Preset, Workload
from steelyard.errors import UserError, named
from steelyard.plan import names, protocols, spreading
from steelyard.plan.cells import Cells, memory_bytes, overrides
from steelyard.plan.protocols import Protocol
from steelyard.plan.run_plan import FrameworkFacts, Group, Skipped
from steelyard.plan.traffic import traffic
from steelyard.statistics import metrics
from steelyard_worker import accumulation
from steelyard_worker.case import INFERENCE, NO_OPTIMIZER, TRAINING, Case, Optimizer, Settings

TASKS = (TRAINING, INFERENCE)
# The option of data that says how many training samples are used.
LIMIT = "train_limit"


@dataclass(frozen=True)
class Common:
    """The common properties of all cases of a group; groups with equal values are one group.

    `rule` is the name under which the workload lists the optimizer; several may have the same update rule. `apart`: (knob, value,
    why) of knobs that set the group apart.
    """

    workload: Workload
    preset: Preset
    optimizer: Optimizer
    rule: str
    task: str
    precision: str
    threads: int
    seed: int
    device: str
    deterministic: bool
    protocol: Protocol
    train_steps: int
    evaluation_limit: int
    stands_for: str
    memory_limit: int
    graphs: bool = False
    thresholds: tuple[float, ...] = ()
    apart: tuple[tuple[str, Any, str], ...] = ()

    @property
    def base(self) -> str:
        """Workload and preset."""
        return f"{self.workload.name}:{self.preset.name}"

    def fields(self) -> dict[str, Any]:
        """Return what may tell two groups of one workload and preset apart: {shown name: value}."""
        largest = {"batch": "largest"} if self.protocol.searches_batch else {}
        return {
            **self.preset.sizes,
            "data": "yes" if self.preset.data else "synthetic",
            LIMIT: self.preset.data.get(LIMIT, "all") if self.preset.data else "",
            "optimizer": self.rule,
            "implementation": self.optimizer.implementation,
            "task": self.task,
            "precision": self.precision,
            "threads": self.threads or "default",
            "seed": self.seed,
            "device": self.device,
            "deterministic": self.deterministic,
            "protocol": self.protocol.name,
            "rounds": f"{self.protocol.rounds_min}-{self.protocol.rounds_max}",
            "train_steps": self.train_steps,
            "evaluation_limit": self.evaluation_limit,
            "graphs": "counted" if self.graphs else "not counted",
            "thresholds": " and ".join(f"{each:g}" for each in self.thresholds) or "those of the study",
            "memory_limit": f"{self.memory_limit / 1e9:g}GB" if self.memory_limit else "none",
            **largest,
        }


@dataclass
class Members:
    """The cases of a group, and the frameworks that are missing from it: (environment, title, reason)."""

    common: Common
    cases: dict[str, Case] = field(default_factory=dict)
    skipped: list[tuple[str, str, str]] = field(default_factory=list)


def groups(
    tables: tuple[Cells, ...], known: dict[str, Workload], facts: dict[str, FrameworkFacts]
) -> tuple[list[Group], list[Skipped]]:
    """Return every group that has a case, and what is skipped. UserError: a name that does not exist."""
    found: dict[str, Members] = {}
    for cells in tables:
        environments = chosen_environments(cells.frameworks)
        for common in _commons(cells, known):
            members = found.setdefault(repr(common), Members(common))
            for framework, version in environments:
                _add(found, members, cells, framework, version, f"{facts[framework].title} {version}".strip())
    titles = names.groups(
        [each.common.base for each in found.values()], [each.common.fields() for each in found.values()]
    )
    kept: list[Group] = []
    skipped: list[Skipped] = []
    for (name, suffix), members in zip(titles, found.values(), strict=True):
        name = ",".join([name, *(f"{knob}={value}" for knob, value, _ in members.common.apart)])
        suffix += "".join(f", {knob} {value}" for knob, value, _ in members.common.apart)
        skipped += [Skipped(name, *each) for each in members.skipped]
        if members.cases:
            kept.append(_group(name, suffix, members, facts))
    return kept, skipped


def _add(found: dict[str, Members], members: Members, cells: Cells, framework: str, version: str, title: str) -> None:
    """Add the cases of one environment, and why there is none for the environment or for a value of a knob.

    A case that a knob sets apart is added to a group of its own.
    """
    known, environment = frameworks.framework(framework), joined((framework, version))
    if reason := _obstacle(members.common, known):
        members.skipped.append((environment, title, reason))
        return
    wanted, missing = spreading.strategies(cells, known)
    members.skipped += [(environment, title, reason) for reason in missing]
    for case in _cases(cells, members.common, framework, version, wanted):
        reason = (
            _obstacle_of_case(members.common, known, case)
            or spreading.obstacle(known, case, members.common.protocol.searches_batch)
            or known.obstacle(case.settings, case.optimizer)
            or _export_obstacle(members.common, case)
        )
        if reason:
            members.skipped.append((environment, _with_origin(known, title, case), reason))
        else:
            knobs = case.settings.knobs
            reasons = known.apart(case.settings, case.optimizer)
            common = replace(members.common, apart=tuple((name, knobs[name], why) for name, why in reasons.items()))
            # A case that is requested twice is measured once.
            found.setdefault(repr(common), Members(common)).cases[case.id] = case


def _with_origin(known: Framework, title: str, case: Case) -> str:
    """Add where the network is from, if the framework has none of its own."""
    return f"{title}, {case.settings.mode}" if known.exporters else title


def _export_obstacle(common: Common, case: Case) -> str:
    """Return why the network of a case cannot be exported; empty if it can, or if its own framework has it."""
    exporter = frameworks.exporter_of(case).partition("@")[0]
    return _obstacle(common, frameworks.framework(exporter)) if exporter else ""


def chosen(known: dict[str, Workload], text: str) -> tuple[Workload, Preset]:
    """Read `workload` or `workload:preset`; without a preset it is the first."""
    name, _, requested = text.partition(":")
    workload = named(known, name, f"There is no workload '{name}'.")
    return workload, workload.preset(requested or next(iter(workload.presets)))


def chosen_environments(requested: tuple[str, ...]) -> list[tuple[str, str]]:
    """Read `framework`, `framework@version` or `*` for all; returns (framework, version) pairs."""
    texts = [each for text in requested for each in (list(frameworks.contenders()) if text == "*" else [text])]
    found = [(framework, version) for framework, _, version in (text.partition("@") for text in texts)]
    for framework, _ in found:
        frameworks.framework(framework)
    return list(dict.fromkeys(found))


def joined(environment: tuple[str, str]) -> str:
    """Return `framework`, or `framework@version`."""
    framework, version = environment
    return f"{framework}@{version}" if version else framework


def _commons(cells: Cells, known: dict[str, Workload]) -> Iterator[Common]:
    protocol = protocols.protocol(cells.protocol, cells.rounds)
    _check_optimizer(cells)
    spreading.check(cells)
    for text in cells.workloads:
        workload, preset = chosen(known, text)
        sized = [
            preset.with_sizes(sizes) for sizes in overrides(cells.set, preset.sizes, f"{workload.name}:{preset.name}")
        ]
        for each, samples, batch, optimizer, task, precision, threads, seed, limit in itertools.product(
            sized,
            cells.train_limits or (0,),
            cells.batches or (0,),
            cells.optimizers or ("",),
            cells.tasks or TASKS[:1],
            cells.precisions or ("float32",),
            spreading.threads(cells),
            cells.seeds or (1,),
            cells.memory_limits or ("",),
        ):
            final = each.with_sizes({"batch": batch} if batch else {})
            if cells.synthetic:
                final = replace(final, data={})
            final = _limited(final, samples, f"{workload.name}:{preset.name}") if samples else final
            named(dict.fromkeys(TASKS), task, f"There is no task '{task}'.")
            if cells.thresholds and workload.metric == metrics.NONE:
                raise UserError(
                    f'{workload.name} has no metric (metric = "none" in its spec.toml), so it reaches no threshold.'
                )
            trains = task == TRAINING
            rule = (optimizer or final.optimizer) if trains else ""
            yield Common(
                workload,
                final,
                _optimizer(cells, workload, final, optimizer, task),
                rule,
                task,
                precision,
                threads,
                seed,
                cells.device or "cpu",
                cells.deterministic,
                protocol,
                cells.train_steps if trains else 0,
                cells.evaluation_limit if trains else 0,
                cells.stands_for,
                memory_bytes(limit),
                cells.graphs,
                cells.thresholds if trains else (),
            )


def _limited(preset: Preset, samples: int, name: str) -> Preset:
    """Return the preset with this number of training samples. UserError: it reads no data set."""
    if not preset.reads_data:
        raise UserError(
            f"A number of training samples has no effect on {name}, which computes on random batches here. Remove --train-limit "
            "(train_limits), or choose a preset with a data set, and no --synthetic."
        )
    return replace(preset, data={**preset.data, LIMIT: samples})


def _check_optimizer(cells: Cells) -> None:
    """Reject an optimizer where nothing is trained."""
    if set(cells.tasks) == {INFERENCE} and (cells.optimizers or cells.optimizer_implementation):
        raise UserError(
            "An optimizer has no effect on inference, which updates nothing. Remove the optimizer or the task."
        )


def _optimizer(cells: Cells, workload: Workload, preset: Preset, name: str, task: str) -> Optimizer:
    if task == INFERENCE:
        return NO_OPTIMIZER
    return replace(workload.optimizer(preset, name or None), implementation=cells.optimizer_implementation or "native")


def _group(name: str, suffix: str, members: Members, facts: dict[str, FrameworkFacts]) -> Group:
    common = members.common
    workload, network = common.workload, common.workload.network(common.preset)
    able = [each for each in frameworks.all_frameworks() if workload.implemented_by(each)]
    return Group(
        name=name,
        title=f"{workload.title}{suffix}",
        unit=workload.unit,
        metric=workload.metric,
        summary=common.preset.summary,
        parameters=network.trainable_count,
        training_flops=network.training_flops,
        forward_flops=network.forward_flops,
        implemented_by=tuple(able),
        float64=tuple(each for each in able if not workload.obstacle(each, "float64")),
        protocol=common.protocol,
        train_steps=common.train_steps,
        evaluation_limit=common.evaluation_limit,
        stands_for=common.stands_for,
        apart=" ".join(f"{why[:1].upper()}{why[1:]}." for _, _, why in common.apart),
        variants=names.variants(name, list(members.cases.values()), facts),
        graphs=common.graphs,
        thresholds=common.thresholds,
        traffic=traffic(network, common.optimizer, common.precision),
        loop_reads=network.loop_reads,
        replaced=_replaced(common),
    )


def _replaced(common: Common) -> dict[str, Any]:
    """Return the preset's values of the sizes that are others here."""
    usual = common.workload.presets[common.preset.name].sizes
    return {name: value for name, value in usual.items() if common.preset.sizes[name] != value}


def _obstacle(common: Common, known: Framework) -> str:
    """Return why a framework cannot run a group as requested; empty if it can."""
    workload = common.workload
    if obstacle := workload.obstacle(known.name, common.precision):
        which = "" if known.name in workload.unsupported else f" in {common.precision}"
        return f"{known.title} cannot run {workload.name}{which}: {obstacle}"
    if known.exporters and common.task != INFERENCE:
        return f"{known.title} runs networks that other frameworks have exported and does not train them. Use --task inference."
    if not known.exporters and not workload.implemented_by(known.name):
        own = f", no workloads/{workload.name}.py in {known.user_folder}" if known.user_folder else ""
        missing = f"there is no {known.name}.py in its folder{own}"
        return f"{known.title} has no implementation of {workload.name} ({missing})."
    for requested in (common.device, common.precision):
        if requested in known.unsupported:
            return f"{known.title} cannot run with {requested}: {known.unsupported[requested]}"
    if common.device not in known.devices:
        return f"{known.title} has no device '{common.device}' (it has {', '.join(known.devices)})."
    if common.precision not in known.precisions:
        return f"{known.title} has no precision '{common.precision}' (it has {', '.join(known.precisions)})."
    if not common.preset.data and "cached" not in common.protocol.schedule.inputs:
        return f"Preset {common.base} has no data set, and protocol {common.protocol.name} needs one."
    if common.task == INFERENCE and common.protocol.times_training:
        return (
            f"Protocol {common.protocol.name} times a whole training, and an inference is none. Choose epochs:N for it."
        )
    return _obstacle_of_memory(common)


def _obstacle_of_memory(common: Common) -> str:
    """Return why a memory limit, or the search for the largest batch, cannot be used as requested; empty if it can."""
    if common.memory_limit and common.device != "cpu":
        return f"A memory limit holds for main memory, so it cannot be used on {common.device}."
    if not common.protocol.searches_batch:
        return ""
    if common.task == INFERENCE:
        return (
            f"Protocol {common.protocol.name} looks for the largest batch that trains, and an inference does not train."
        )
    if not common.memory_limit and common.device == "cpu":
        return f"Protocol {common.protocol.name} needs a memory limit on the CPU, such as --memory-limit 4GB."
    return ""


def _obstacle_of_case(common: Common, known: Framework, case: Case) -> str:
    """Return why a workload cannot run in the mode of a case, or why a setting has no effect on it; empty if it can."""
    mode = case.settings.mode
    if reason := common.workload.obstacle(known.name, mode):
        return f"{known.title} cannot run {common.workload.name} in mode {mode}: {reason}"
    if case.loader_workers and not case.data:
        return (
            f"Loader workers have no effect on {common.base} without a data set: its batches lie on the device already."
        )
    if case.settings.knobs.get("dropout") == "on" and not common.workload.network(common.preset).dropout:
        return f"{common.base} has no dropout to turn on: it was not published with any, or its dropout is not built."
    if reason := _obstacle_of_parts(common, known, case):
        return reason
    if case.settings.knobs.get("recomputation", "none") != "none" and not common.workload.network(common.preset).blocks:
        return (
            f"{common.base} has no blocks to compute again: no parts of it follow each other, or they are not trained."
        )
    return ""


def _obstacle_of_parts(common: Common, known: Framework, case: Case) -> str:
    """Return why a step cannot compute its batch in as many parts as requested; empty if it can."""
    parts = accumulation.parts_of(case.settings)
    if reason := accumulation.obstacle(parts, case.batch):
        return reason
    if parts > 1 and common.protocol.searches_batch:
        return "The largest batch is searched for among whole batches. Remove --accumulate, or choose another protocol."
    if parts > 1 and (reason := common.workload.obstacle(known.name, accumulation.KNOB)):
        return f"{known.title} cannot compute {common.workload.name} in parts of a batch: {reason}."
    return ""


def _cases(cells: Cells, common: Common, framework: str, version: str, strategies: list[str]) -> list[Case]:
    known = frameworks.framework(framework)
    settings = Settings(known.default_mode, common.device, common.threads, common.precision, common.deterministic)
    first = Case(
        workload=common.workload.name,
        preset=common.preset.name,
        sizes=common.preset.sizes,
        data=common.preset.data,
        specification=common.workload.specification(common.preset),
        optimizer=common.optimizer,
        framework=framework,
        version=version,
        settings=settings,
        task=common.task,
        seed=common.seed,
        memory_limit=common.memory_limit,
    )
    targets = {framework, joined((framework, version))}
    return [
        replace(
            first,
            strategy=strategy,
            version=spreading.version(known, strategy, version),
            loader_workers=workers,
            settings=spreading.settled(
                known, known.complete(replace(settings, mode=mode, knobs=knobs), strategy), strategy, strategies
            ),
        )
        for mode, knobs, workers, strategy in itertools.product(
            _modes(cells, known, targets), _knobs(cells, known, targets), cells.loader_workers or (0,), strategies
        )
    ]


def _modes(cells: Cells, known: Framework, targets: set[str]) -> list[str]:
    requested: list[str] = []
    for text in cells.modes:
        name, _, listed = text.partition("=")
        if name in targets:
            requested += [known.mode(mode) for mode in listed.split(",")]
    return requested or [known.default_mode]


def _knobs(cells: Cells, known: Framework, targets: set[str]) -> list[dict[str, Any]]:
    """Return every combination of the requested values; the other knobs stay at their defaults."""
    values: dict[str, list[Any]] = {}
    for text in cells.knobs:
        path, equals, listed = text.partition("=")
        if not equals:
            raise UserError(f"--knob {text}: write FRAMEWORK.KNOB=VALUE or KNOB=VALUE.")
        name, _, knob = path.rpartition(".")
        if name in targets or (not name and knob in known.knobs):
            values[knob] = [known.knob(knob, value) for value in listed.split(",")]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
