"""The contents of a page or a table: every number of a run once, with its unit and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.results.port_record import PORT_CHECK
from steelyard.statistics.intervals import Location, Ratio, location_interval
from steelyard.statistics.sentences import with_remarks
from steelyard_worker.case import INFERENCE, TRAINING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.analysis.commands import Further
    from steelyard.analysis.notices import ResultWarning
    from steelyard.analysis.published_tables import Table
    from steelyard.analysis.side_records import SideRecords
    from steelyard.plan.protocols import Protocol
    from steelyard.plan.run_plan import FrameworkFacts, RunPlan, Skipped
    from steelyard.profiles.graphs import Counted
    from steelyard.profiles.recorded import Explained
    from steelyard.results.communication import Communication
    from steelyard.results.facts import Reused
    from steelyard.results.quantities import Quantity
    from steelyard.results.record import RunRecord
    from steelyard.results.repeated import Repeated
    from steelyard.results.round_results import RoundResults
    from steelyard.results.searched import Searched
    from steelyard.results.trials import Evaluation, Trial
    from steelyard.statistics.decision import Ranking
    from steelyard.statistics.steadiness import SeriesLabel
    from steelyard.wording.prices import Price
    from steelyard_worker.case import Case


@dataclass(frozen=True)
class Speed:
    """The times of one contender on one input, in nanoseconds per step; `throughput` in samples per second.

    `ratio`: time over the fastest contender's time; None for the fastest itself, and if another quantity is ranked.
    `flops`: of a step; `least_bytes`: what a step must move between memory and processor; `held_bytes`: the data that it uses, at
    least; 0 where unknown. `busy_cores`: cores that the process keeps busy; `gpu_share`: share of the time in which a kernel ran.
    `joules`: energy per step, by meter. Means over processes.
    """

    median_ns: float
    location: Location
    throughput: float
    throughput_low: float
    throughput_high: float
    ratio: Ratio | None
    processes: int
    counted_steps: int
    share_of_peak: float | None
    share_of_bandwidth: float | None
    flops: int
    least_bytes: int
    held_bytes: int
    busy_cores: float | None
    share_of_cores: float | None
    gpu_share: float | None
    joules: dict[str, float]
    host_share: float | None
    label: SeriesLabel | None


@dataclass(frozen=True)
class Standing:
    """The ranked quantity of one contender on one input, in its unit: geometric mean over processes with its interval.

    `ratio`: the value over the best contender's value; None for the best itself and where they share no round.
    """

    value: float
    low: float
    high: float
    processes: int
    ratio: Ratio | None


@dataclass(frozen=True)
class Proof:
    """A certificate as shown in the table. `state`: certified, rejected, none.

    `on_purpose`: "another algorithm" or "wrong on purpose" where something else is computed on purpose; otherwise empty.
    `processes`: whether the first losses of the processes equal those of the certificate; empty without certificate or process.
    """

    state: str
    sentence: str
    details: dict[str, Any]
    on_purpose: str = ""
    processes: str = ""

    @property
    def by_port_check(self) -> bool:
        """Whether a port check, not a certificate, compared what it computes."""
        return self.details.get("by") == PORT_CHECK


@dataclass(frozen=True)
class Contender:
    """One case with all of its measurements.

    `variant` is its name in the group, `title` what tables show, `title_parts` the framework and what distinguishes the contender
    in its title, `settings` its knobs that are not at their defaults, each with its value.
    `standings` is by ranked input, `speeds` by measured input.
    `profile`: where the time of its step goes; None if that was not asked, or failed for the reason `not_profiled`. `profiles`:
    the profiles of all profiled processes, by number.
    `graphs`: stages of the graph of its step, empty if they were not counted, or could not be for the reason `no_graph`.
    `communication`: its exchange by itself; None if that was not measured, or could not be for the reason `no_communication`.
    `latencies`: by quantity. `facts`: those of the framework. `above_peak`: why its speed is an error; empty
    where it is none.
    """

    case: Case
    facts: FrameworkFacts
    variant: str
    title: str
    title_parts: tuple[str, ...]
    settings: tuple[str, ...]
    version: str
    mode: str
    standings: dict[str, Standing]
    speeds: dict[str, Speed]
    first_step_ns: float | None
    to_first_step_ns: float | None
    phases_ns: dict[str, float]
    latencies: dict[str, Location]
    peak_resident_bytes: int | None
    peak_device_bytes: int | None
    evaluation: Evaluation | None
    losses: tuple[float, ...]
    proof: Proof
    applied: dict[str, Any]
    libraries: dict[str, Any]
    trials: tuple[Trial, ...]
    failure: str
    above_peak: str = ""
    profile: Explained | None = None
    not_profiled: str = ""
    graphs: tuple[Counted, ...] = ()
    no_graph: str = ""
    communication: Communication | None = None
    no_communication: str = ""
    profiles: dict[int, Explained] = field(default_factory=dict)

    @property
    def maintained(self) -> bool:
        """Whether its framework is still maintained."""
        return self.facts.maintained

    @property
    def trains_epochs(self) -> bool:
        """Whether its processes train whole epochs."""
        return any(trial.epochs for trial in self.trials)

    @property
    def steps_per_epoch(self) -> int:
        """The steps of an epoch; 0 where no whole epochs are trained."""
        return sum(block.steps for block in self.trials[0].epochs.get(1, ())) if self.trials else 0

    @property
    def peak_bytes(self) -> int | None:
        """The peak memory: of the device if the framework reports it, otherwise of the process; None if unknown."""
        return self.peak_device_bytes or self.peak_resident_bytes

    @property
    def name(self) -> str:
        """The title, with a mark if the framework is retired."""
        return self.title if self.maintained else f"{self.title} (retired)"

    @property
    def in_text(self) -> str:
        """The name as it is written in a sentence that lists several."""
        return self.title_in_text if self.maintained else with_remarks(*self.title_parts, "retired")

    @property
    def title_in_text(self) -> str:
        """The title as it is written in a sentence that lists several."""
        return with_remarks(*self.title_parts)

    @property
    def distinguishing(self) -> str:
        """The title without the framework; empty if the framework is all of it."""
        return ", ".join(self.title_parts[1:])

    @property
    def curve(self) -> str:
        """The title, with a mark if something else is computed on purpose."""
        return f"{self.title} ({self.proof.on_purpose})" if self.proof.on_purpose else self.title


@dataclass(frozen=True)
class Comparison:
    """One group: contenders best first on the primary input, with verdicts for each input.

    `task`: training or inference. `quantity`: the ranked one, in the task's words; one with a single value per process
    has PROCESS as its only input. `sentences` and `advice` are by input. `reused` says from which earlier run the rounds are,
    if they are. `thresholds`: of the main score of the test metric. `remarks`: (title, note) pairs: that a framework is
    retired, or what a row computes that is wrong on purpose. `apart`: why its contenders are compared with each other only;
    usually empty. `further`: how to run more rounds. `peak_flops` (FLOP/s) and `bandwidth` (bytes/s) are the
    measured limits of this machine, None where they are not known; `cache_bytes`: size of its last-level caches, 0 where it is
    not known. `replaced`: {size: value in the preset} of the sizes that were changed. `initial_weights`: the file that they come
    from, in words; empty where they were drawn. `price`: what costs are computed with; None where none was given.
    """

    group: str
    title: str
    task: str
    unit: str
    preset: str
    origin: str
    batch: int
    parameters: int
    primary: str
    quantity: Quantity
    contenders: tuple[Contender, ...]
    rankings: dict[str, Ranking]
    sentences: dict[str, str]
    advice: dict[str, str]
    skipped: tuple[Skipped, ...]
    reused: Reused | None
    remarks: tuple[tuple[str, str], ...]
    protocol: Protocol
    further: Further
    thresholds: tuple[float, ...] = ()
    apart: str = ""
    peak_flops: float | None = None
    bandwidth: float | None = None
    cache_bytes: int = 0
    threads: int = 0
    replaced: dict[str, Any] = field(default_factory=dict)
    initial_weights: str = ""
    price: Price | None = None


@dataclass(frozen=True)
class View:
    """All contents of a report.

    `missing`: the skipped cases of groups in which nothing could be measured. `published`: the entries of documents that the
    study is compared with. `searched`: the settings that were tried before the rounds. `repeated`: attempts at rounds that do
    not count only because workers stood still. `price`: what costs are computed with; it is given by who looks, and in no record.
    """

    name: str
    folder: Path
    record: RunRecord
    quantity: Quantity
    comparisons: tuple[Comparison, ...]
    missing: tuple[Skipped, ...]
    disturbances: tuple[dict[str, Any], ...]
    warnings: tuple[ResultWarning, ...]
    published: tuple[Table, ...] = ()
    searched: Searched | None = None
    repeated: tuple[Repeated, ...] = ()
    price: Price | None = None

    @property
    def task(self) -> str:
        """The task whose words describe the whole run: inference if every comparison is one, otherwise training."""
        return TRAINING if {each.task for each in self.comparisons} - {INFERENCE} else INFERENCE


@dataclass(frozen=True)
class Source:
    """The sources of a view, all read from the run folder.

    `certificates`: by case id. `beside`: what was recorded outside of the rounds, by case id; read once for all quantities.
    `repeated`: attempts at rounds that do not count only because workers stood still. `price`: what costs are computed with.
    """

    name: str
    plan: RunPlan
    record: RunRecord
    results: RoundResults
    certificates: dict[str, dict[str, Any]]
    quantity: Quantity
    disturbances: tuple[dict[str, Any], ...]
    folder: Path
    beside: Mapping[str, SideRecords]
    repeated: tuple[Repeated, ...] = ()
    price: Price | None = None


def location_of(quantity: Quantity, trials: tuple[Trial, ...], name: str) -> Location | None:
    """Return the mean over processes of a quantity, in its unit; None without any."""
    values = list(quantity.of_rounds({t.job.round: t for t in trials}, name).values())
    return (location_interval(values) or Location(values[0], 0.0, math.inf, 1)) if values else None
