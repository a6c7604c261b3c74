"""The complete plan of a run as plain data. It is stored in run.json; reports and resumed runs need nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from steelyard.plan import focus_pairs
from steelyard.plan.options import Options
from steelyard.plan.protocols import Protocol
from steelyard.plan.studies import Study
from steelyard.plan.traffic import Traffic
from steelyard.published.gathering import Published
from steelyard.statistics.decision import DecisionPlan
from steelyard_worker import records
from steelyard_worker.case import INFERENCE, Case
from steelyard_worker.strategy import parts_of

LONGEST_FILE_NAME = 120
PASSES = "passes"
"""The knob that chooses the passes which rewrite a graph."""


@dataclass(frozen=True)
class Variant:
    """A case of a group.

    `name` is unique in the group, as typed on the command line; `title` is what tables show; `settings` lists the knobs
    that are not at their defaults.
    """

    group: str
    name: str
    title: str
    settings: str
    case: Case

    @property
    def key(self) -> str:
        """A name that is unique in the run, for messages and file names; code should use the case's id."""
        return f"{self.group}/{self.name}"

    @property
    def file_name(self) -> str:
        """The key, restricted to characters that every file system accepts, and to a length."""
        plain = "".join(letter if letter.isalnum() or letter in ".-=@" else "_" for letter in self.key)
        return plain if len(plain) <= LONGEST_FILE_NAME else f"{plain[:LONGEST_FILE_NAME]}-{self.case.id}"


@dataclass(frozen=True)
class Group:
    """Variants that are compared with each other, and what reports show about their workload.

    `metric` names the test metric; `summary` describes the preset; `training_flops` and `forward_flops` are of one sample.
    `loop_reads`: scalars of weights that a forward pass of a batch reads in loops over time.
    `implemented_by` and `float64` list the frameworks that implement the workload, and those of them that can compute it in
    float64.
    `train_steps`: training steps before the evaluation; `evaluation_limit`: test samples used at most, 0 for all.
    `stands_for`: the published workload:preset that this group stands for at another size; empty: its own.
    `apart`: why its cases are compared with each other only, and certified with another value of a knob; usually empty.
    `traffic`: the least data that a step moves between memory and processor; nothing in older records.
    `graphs`: whether the operations of their training steps' graphs are counted.
    `thresholds`: scores of the test metric of which a report says when trainings reached them; empty: those of the plan.
    `replaced`: the preset's values of the sizes that are others here, by name; nothing in older records.
    """

    name: str
    title: str
    unit: str
    metric: str
    summary: str
    parameters: int
    training_flops: int
    forward_flops: int
    implemented_by: tuple[str, ...]
    float64: tuple[str, ...]
    protocol: Protocol
    train_steps: int
    evaluation_limit: int
    stands_for: str
    variants: tuple[Variant, ...]
    apart: str = ""
    traffic: Traffic = field(default_factory=Traffic)
    graphs: bool = False
    thresholds: tuple[float, ...] = ()
    loop_reads: int = 0
    replaced: dict[str, Any] = field(default_factory=dict)

    @property
    def cases(self) -> list[Case]:
        """The variants' cases."""
        return [variant.case for variant in self.variants]

    @property
    def takes_turns(self) -> bool:
        """Whether the processes of a round take turns, if there are several: single ones, on the CPU, without a limit of memory.

        All of them need memory at once, and ranks would have to wait together.
        """
        return self.protocol.schedule.turns > 0 and not any(
            case.settings.device != "cpu" or parts_of(case.strategy) > 1 or case.memory_limit for case in self.cases
        )

    def decision(self, delta: float) -> DecisionPlan:
        """Return the decision rule of the protocol, with the pairs that this group is about first of all."""
        return replace(self.protocol.decision(delta), planned=self._planned)

    @cached_property
    def _planned(self) -> frozenset[frozenset[str]]:
        return focus_pairs.pairs(self.cases)

    def step_flops(self, case: Case) -> int:
        """Return the FLOPs of one step of a case: without a frozen body, a training step counts as three forward passes.

        Of samples as long as the preset's arrays; batches that are cut to their own length need fewer.
        """
        return (self.forward_flops if case.task == INFERENCE else self.training_flops) * case.batch

    def known_step_flops(self, case: Case) -> int:
        """Return the FLOPs of one step; 0 where they are not known, because every batch has its own length."""
        return 0 if case.cuts_batches else self.step_flops(case)

    def known_traffic(self, case: Case) -> Traffic:
        """Return the least traffic of a step; nothing where it is not known, because every batch has its own length."""
        return Traffic() if case.cuts_batches else self.traffic

    @property
    def titles(self) -> dict[str, str]:
        """Case id -> title."""
        return {variant.case.id: variant.title for variant in self.variants}

    @property
    def batch_text(self) -> str:
        """Samples per step, or `largest` where they are searched for."""
        return "largest" if self.protocol.searches_batch else str(self.cases[0].batch)


@dataclass(frozen=True)
class Skipped:
    """A framework that cannot run a group, and why. `title` is its shown name, with the version if one was requested."""

    group: str
    environment: str
    title: str
    reason: str


@dataclass(frozen=True)
class FrameworkFacts:
    """The facts about a framework that reports show. `knobs` are the defaults; `note` says, for example, that it is retired.

    `maintained_source`: the page that says whether it is maintained. `exporters`: of a runtime of exported networks, mode ->
    environment that exports them. `exported_to`: the runtimes for which this framework can export networks.
    """

    title: str
    default_mode: str
    knobs: dict[str, Any]
    maintained: bool = True
    note: str = ""
    exporters: dict[str, str] = field(default_factory=dict)
    maintained_source: str = ""
    exported_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class Search:
    """Settings of one framework that a run tries before its rounds, to measure the fastest of them beside the default.

    `environment` is tuned; the first variant of the run's only group has its settings as they usually are. `axes`: `mode` or
    knob -> values to try, the usual one first. `minutes`: time limit of the search. `run`: the run whose contender is tuned.
    `ended`: whether the group holds what was chosen.
    """

    environment: str
    axes: dict[str, tuple[Any, ...]]
    minutes: float
    run: str = ""
    ended: bool = False


@dataclass(frozen=True)
class RunPlan:
    """The groups of a run with their cases and protocols, the study, what was published of it, and the options as requested.

    `search`: what is tried before the rounds; usually nothing.
    """

    options: Options
    study: Study
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...]
    frameworks: dict[str, FrameworkFacts]
    workload_folders: dict[str, str]  # workload -> folder with its network.py and implementations
    workload_hashes: dict[str, str]  # workload -> hash of the files in that folder
    framework_hashes: dict[str, str]  # framework of the user's own -> hash of the files in its folder
    published: Published = field(default_factory=Published)
    search: Search | None = None

    def decision(self, group: Group) -> DecisionPlan:
        """Return the decision rule of a group, which knows the contenders whose framework is retired."""
        retired = [case.id for case in group.cases if not self.frameworks[case.framework].maintained]
        return replace(group.decision(self.options.delta), retired=frozenset(retired))

    @property
    def counted(self) -> list[Variant]:
        """The variants whose graphs are counted: the one with the default passes tries the other choices, too."""
        return [
            each
            for group in self.groups
            if group.graphs
            for each in group.variants
            if each.case == (whole := self._with_all_passes(each.case)) or whole not in group.cases
        ]

    def _with_all_passes(self, case: Case) -> Case:
        default = {PASSES: self.frameworks[case.framework].knobs[PASSES]} if PASSES in case.settings.knobs else {}
        return replace(case, settings=replace(case.settings, knobs=case.settings.knobs | default))

    @property
    def variants(self) -> list[Variant]:
        """Every variant of every group, in the order requested."""
        return [variant for group in self.groups for variant in group.variants]

    @cached_property
    def by_id(self) -> dict[str, Variant]:
        """Case id -> variant."""
        return {variant.case.id: variant for variant in self.variants}

    @property
    def protocols(self) -> list[Protocol]:
        """The different protocols of the groups."""
        return list({group.protocol.name: group.protocol for group in self.groups}.values())

    @property
    def minutes(self) -> float:
        """The minutes after which no further round starts; 0: no limit."""
        return self.study.minutes if self.options.minutes is None else self.options.minutes

    @property
    def profiles(self) -> int:
        """The processes of each contender that are profiled after the rounds."""
        return self.study.profiles if self.options.profiles is None else self.options.profiles

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Scores of which a report says when trainings reached them, in groups without their own."""
        return self.options.thresholds or self.study.thresholds

    @property
    def rounds_max(self) -> int:
        """The most rounds of any group."""
        return max(group.protocol.rounds_max for group in self.groups)

    @property
    def seed(self) -> int:
        """The seed of the order in which the cases of a round run."""
        return self.groups[0].cases[0].seed

    @property
    def initial_weights(self) -> str:
        """The file of the initial weights: its name, who reads it, its digest; empty where they are drawn."""
        digest = next((each.case.weights for each in self.variants if each.case.weights), "")
        if not digest:
            return ""
        reader, _, path = self.options.weights.partition("/")  # the path is absolute; nodes of a cluster have none
        framework = reader.rstrip(":")
        title = self.frameworks[framework].title if framework in self.frameworks else framework
        name = path.rpartition("/")[2] or "a file"
        return f"{name}, {f'read by {title}, ' if title else ''}SHA-256 {digest}"

    def group(self, name: str) -> Group:
        """Return a group by name; KeyError if there is none."""
        return {group.name: group for group in self.groups}[name]

    @property
    def environments(self) -> list[str]:
        """The names of the environments that the cases need."""
        return list(dict.fromkeys(name for variant in self.variants for name in self.environments_of(variant.case)))

    def environments_of(self, case: Case) -> list[str]:
        """Return the environments that a case needs: its own, and the one that exports its network."""
        exporter = self.frameworks[case.framework].exporters.get(case.settings.mode)
        return [case.environment, exporter] if exporter else [case.environment]

    def title(self, case: Case) -> str:
        """Return the title of a case's framework, with the version if one was requested."""
        return f"{self.frameworks[case.framework].title} {case.version}".strip()

    def _title(self, variant: Variant) -> str:
        """Return the title of a variant that is skipped: of its framework, or its own where it needs two environments."""
        return variant.title if len(self.environments_of(variant.case)) > 1 else self.title(variant.case)

    def without(self, unavailable: Mapping[str, str]) -> Self:
        """Return the plan without the cases of unavailable environments ({name: reason}); they are listed as skipped."""
        missing = {
            each.case.id: next((name for name in self.environments_of(each.case) if name in unavailable), "")
            for each in self.variants
        }
        skipped = [
            Skipped(each.group, each.case.environment, self._title(each), unavailable[missing[each.case.id]])
            for each in self.variants
            if missing[each.case.id]
        ]
        groups = []
        for group in self.groups:
            remaining = tuple(each for each in group.variants if not missing[each.case.id])
            groups += [replace(group, variants=remaining)] if remaining else []
        return replace(self, groups=tuple(groups), skipped=(*self.skipped, *dict.fromkeys(skipped)))

    def with_inputs(self, identity: Callable[[Case], str]) -> Self:
        """Return the plan with `inputs` set in every case; the ids of the cases change accordingly."""

        def ready(variant: Variant) -> Variant:
            return replace(variant, case=replace(variant.case, inputs=identity(variant.case)))

        groups = (replace(group, variants=tuple(map(ready, group.variants))) for group in self.groups)
        return replace(self, groups=tuple(groups))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for run.json."""
        found: dict[str, Any] = records.plain(self)
        return found
