"""What a process of each kind of job does once its framework is loaded and the settings were read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker import (
    certify,
    checkpoints,
    communication,
    contract,
    exchange,
    graphs,
    inference,
    measure,
    profiling,
    protocol,
    rules,
    tensors,
)
from steelyard_worker.case import INFERENCE
from steelyard_worker.job_kinds import (
    CERTIFY,
    CHECKPOINT,
    COMMUNICATION,
    CONTRACT,
    EXPORT,
    GRAPH,
    MEASURE,
    PROBE,
    PROFILE,
    RULE,
    SEARCH,
)
from steelyard_worker.kept_settings import END
from steelyard_worker.phases import Phase
from steelyard_worker.timing import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.base import Adapter
    from steelyard_worker.kept_settings import KeptSettings
    from steelyard_worker.memory import Peaks
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job
    from steelyard_worker.ranks import Ranks


@dataclass(frozen=True)
class Work:
    """A job and what its process has. `build_trainer` and `build_predictor` build the network with the given weights.

    `read_checkpoint` loads a file of the framework's own into the network, and returns its tensors, canonical.
    """

    job: Job
    network: Network
    adapter: Adapter
    events: EventWriter
    ranks: Ranks
    peaks: Peaks
    kept: KeptSettings
    build_trainer: Callable[..., Any]
    build_predictor: Callable[..., Any]
    read_checkpoint: Callable[[Path], dict[str, Any]]

    @property
    def build(self) -> Callable[..., Any]:
        """The function that builds the network for the task of the job."""
        return self.build_predictor if self.job.case.task == INFERENCE else self.build_trainer

    def initial(self) -> dict[str, Any]:
        """Return the initial weights. Mapped files count as memory used, so a measured process keeps no variable of them."""
        return tensors.read(Path(self.job.weights))


def run_kind(work: Work) -> None:
    """Do what the kind of the job asks for."""
    RUNS[work.job.kind](work)


def _communicate(work: Work) -> None:
    counting = partial(work.build_trainer, work.initial(), method="counting_trainer")
    communication.run(work.job, work.network, work.adapter, counting, work.events, work.ranks)


def _check_contract(work: Work) -> None:
    initial = work.initial()
    contract.check(
        work.job,
        work.network,
        work.adapter,
        initial,
        lambda optimizer: work.build_trainer(initial, optimizer),
        lambda: work.build_predictor(initial),
        work.events,
    )


def _export(work: Work) -> None:
    exchange.export(work.job, work.network, work.initial(), work.adapter, work.build, work.events)


def _read_checkpoint(work: Work) -> None:
    checkpoints.write(work.job, work.network, work.read_checkpoint)


def _check_rule(work: Work) -> None:
    rules.dump(work.job, work.initial(), work.build_trainer, work.events)


def _certify(work: Work) -> None:
    print(protocol.CERTIFIED_BEGINS, flush=True)
    certify.dump(work.job, work.network, work.initial(), work.build, work.events, work.ranks)
    work.kept.check(END)


def _measure(work: Work) -> None:
    infers = work.job.case.task == INFERENCE
    _timed(work, inference.measure_inference if infers else partial(measure.measure, ranks=work.ranks))


def _profile(work: Work) -> None:
    _timed(work, partial(profiling.profile, ranks=work.ranks))


def _count(work: Work) -> None:
    _timed(work, graphs.count)


def _timed(work: Work, run: Callable[..., None]) -> None:
    """Build the network and run its steps, then read the settings again and compare exported networks."""
    peaks = work.peaks
    try:
        built = _stepped(work, run)
    finally:  # a process that ran out of memory says how much it used until then
        work.events.write(
            "memory",
            peak_resident_bytes=peaks.resident_bytes,
            peak_device_bytes=peaks.device_bytes,
            phases=peaks.records(),
        )
    work.kept.check(END)
    if work.job.compared:
        exchange.compare(work.job, built, work.events)


def _stepped(work: Work, run: Callable[..., None]) -> Any:
    """Build the network, follow the schedule, and return what was built."""
    with Phase(work.events, "build", work.peaks):
        built = work.build(work.initial())
    recorder = Recorder(Path(work.job.folder), work.events, work.peaks, work.ranks)
    run(work.job, work.network, work.adapter, built, work.events, recorder)
    recorder.close()
    return built


RUNS: dict[str, Callable[[Work], None]] = {
    MEASURE: _measure,
    PROBE: _measure,
    SEARCH: _measure,
    CERTIFY: _certify,
    RULE: _check_rule,
    CONTRACT: _check_contract,
    EXPORT: _export,
    CHECKPOINT: _read_checkpoint,
    PROFILE: _profile,
    GRAPH: _count,
    COMMUNICATION: _communicate,
}
