"""A session without processes: a function returns the times of every trial."""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from steelyard.environments.pending import already
from steelyard.host.noise import HostNoise
from steelyard.inputs.case_inputs import CaseInputs, recipe
from steelyard.measure import attempts, rounds
from steelyard.measure.session import Session
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard.results.round_results import RoundResults
from steelyard_worker import protocol
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from steelyard.host.counters import Sample
    from steelyard.measure.launch import Watch
    from steelyard.results.trials import Trial
    from steelyard.statistics.decision import Ranking
    from steelyard_worker.protocol import Job

    # (framework, round, attempt, input) -> milliseconds per step; None: the process fails.
    Times = Callable[[str, int, int, str], float | None]

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
MACHINE = "0123456789abcdef"
STEPS = 20


@dataclass
class Screen:
    """Stores the messages and rankings of a run."""

    messages: list[str] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        self.messages.append(sentence)

    def stage(self, title: str) -> None: ...
    def progress(self, label: str, done: float, total: float, note: str = "") -> None: ...
    def trial(self, number: int, variant: object) -> None: ...
    def turn(self, variant: object) -> None: ...
    def close(self) -> None: ...
    def event(self, event: dict[str, Any]) -> None: ...
    def finished(self, trial: Trial) -> None: ...

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        self.rankings.append(ranking)


@dataclass(frozen=True)
class ScriptedSession(Session):
    """A session with scripted times; `started` contains the jobs of all trials in the order in which they were run."""

    times: Times = field(kw_only=True)
    started: list[Job] = field(default_factory=list)

    def run(self, job: Job, turn: Watch | None = None) -> Trial:
        del turn  # these processes never wait
        self.started.append(job)
        return write_trial(job, self.times)

    def keep(self, trial: Trial) -> None: ...

    @property
    def messages(self) -> list[str]:
        """The messages of the run."""
        return cast("Screen", self.screen).messages

    @property
    def rankings(self) -> list[Ranking]:
        """The ranking after each round."""
        return cast("Screen", self.screen).rankings

    def runs_of(self, framework: str) -> list[tuple[int, int]]:
        """Return (round, attempt) of every trial of a framework."""
        return [(job.round, job.attempt) for job in self.started if job.case.framework == framework]


def session(
    folder: Path, times: Times, frameworks: tuple[str, ...] = ("fake", "dummy"), prepared: str = "", **options: Any
) -> ScriptedSession:
    """Return a session of the smallest workload; `prepared` is a data folder; with one, the pipeline is measured."""
    chosen = Options(workloads=("line",), frameworks=frameworks, workload_folders=(str(WORKLOADS),), **options)
    plan = resolve.plan(chosen)
    screen = Screen()
    folder.mkdir(parents=True, exist_ok=True)
    known = record.new(plan, "steelyard run", "0")
    record.write(folder, replace(known, machine=MACHINE, host={"cores_usable": 2}))
    inputs = CaseInputs(Path("/weights"), Data("/synthetic", prepared), "", {}, "0")
    shared = {recipe(variant.case): inputs for variant in plan.variants}
    return ScriptedSession(plan, folder, already({}), shared, cast("Any", None), cast("Any", screen), times=times)


def write_trial(job: Job, times: Times) -> Trial:
    """Write the folder of a trial with these times, and read it."""
    folder = Path(job.folder)
    folder.mkdir(parents=True)
    (folder / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    events: list[dict[str, Any]] = [{"event": "hello", "method": 1}]
    stamps, first, now = array("q"), 0, job.round * 10**12
    for source in job.schedule.inputs:
        milliseconds = times(job.case.framework, job.round, job.attempt, source)
        if milliseconds is None:
            events.append({"event": "error", "kind": "crash", "message": "It broke."})
            break
        step = round(milliseconds * 1e6)
        events.append(
            {
                "event": "samples",
                "input": source,
                "phase": "counted",
                "steps": STEPS,
                "start_ns": now,
                "elapsed_ns": STEPS * step,
                "first_step": first,
            }
        )
        stamps.extend(now + step * (number + 1) for number in range(STEPS))
        first, now = first + STEPS, now + STEPS * step
    else:
        events.append({"event": "done"})
    lines = [json.dumps({"v": protocol.VERSION, "t_ns": 0, **event}) + "\n" for event in events]
    (folder / protocol.EVENTS).write_text("".join(lines), encoding="utf-8")
    (folder / protocol.SAMPLES).write_bytes(stamps.tobytes())
    (folder / protocol.LOSSES).write_bytes(array("f", [1.0] * first).tobytes())
    return trials.read(folder)


class Sampler:
    """A host sampler with scripted noise for each round; rounds after the list are quiet."""

    def __init__(self, *rounds: HostNoise) -> None:
        self._rounds = list(rounds)
        self._now = QUIET

    def __call__(self) -> Sampler:
        return self

    def __enter__(self) -> Sampler:
        self._now = self._rounds.pop(0) if self._rounds else QUIET
        return self

    def __exit__(self, *ended: object) -> None: ...

    def summary(self, since_ns: int = 0, until_ns: int | None = None) -> HostNoise:
        return self._now

    @property
    def samples(self) -> tuple[Sample, ...]:
        return ()


QUIET = HostNoise(seconds=10, samples=10)
NOISY = HostNoise(seconds=10, samples=10, foreign_cores=0.5)


def steady(framework: str, number: int, attempt: int, source: str) -> float:
    """Return 10 ms for Fake and 12 ms for Dummy, with a small variation between rounds."""
    return {"fake": 10.0, "dummy": 12.0}[framework] * (1 + 0.0005 * ((7 * number) % 5 - 2))


def measure(
    run: ScriptedSession, monkeypatch: pytest.MonkeyPatch, *noise: HostNoise, not_certified: tuple[str, ...] = ()
) -> RoundResults:
    """Run all rounds under scripted noise and return their results.

    `not_certified`: frameworks whose certificates did not pass; without any, the run has no certificates.
    """
    monkeypatch.setattr(attempts, "Sampler", Sampler(*noise))
    certificates = {
        case.id: {"passed": case.framework not in not_certified, "losses": [], "loss_limits": []}
        for group in run.plan.groups
        for case in group.cases
    }
    results = RoundResults(certificates if not_certified else {})
    rounds.measure(run, results)
    return results
