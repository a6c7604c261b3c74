"""Read a trial folder as one Trial. Its files may have been damaged or altered, so everything in them is checked."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from steelyard.errors import UserError
from steelyard.results import recorded_jobs
from steelyard.results.events import (
    Applied,
    BatchCheck,
    Block,
    Done,
    EndCheck,
    Error,
    Evaluated,
    Exchanged,
    GraphStage,
    Hello,
    Imported,
    Memory,
    Outputs,
    Phase,
    PhaseMemory,
    Profiled,
    Reduced,
    Shapes,
    Staleness,
    Watched,
    Withheld,
    checked,
)
from steelyard.statistics import metrics
from steelyard.statistics.sentences import listed
from steelyard_worker import protocol, records, tensors
from steelyard_worker.case import INFERENCE, TRAINING
from steelyard_worker.job_kinds import KINDS, MEASURE
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import parts_of

FOLDER = KINDS[MEASURE].folder
JOB = "job.json"

# The phase of batches that were timed one by one.
LATENCY = "latency"

# If the last call of a block returned after this share of the block's time, calls are synchronous.
SYNCHRONOUS = 0.97
NO_RANKS = (
    "The record of another rank of {0} is missing or damaged, so figures over all ranks leave this trial out. To measure it "
    "again, delete that folder."
)


@dataclass(frozen=True)
class Evaluation:
    """Scores of the test metric, by name, after a number of training steps.

    `epoch`: the number of the epoch before it; 0 if the evaluation did not follow an epoch.
    """

    steps: int
    scores: dict[str, float]
    elapsed_ns: int
    epoch: int = 0


@dataclass(frozen=True)
class Trial:
    """The complete record of one worker process; with several ranks, that of the first. `pid`: its id; 0 if not recorded.

    `outputs`: fingerprints by batch and output, such as `inference1/logits`. `shapes`: of the batches, by epoch. `memory`: by
    phase, such as `import` or `counted`. `others`: the records of the other ranks; None if one of them cannot be used.
    `imported`: path -> SHA-256 of what was imported from elsewhere (`results.imported`); None where that was not recorded.
    `watched`: the launcher's observations of the process; None if there are none. `withheld_ns`: for how long others kept it from
    computing in each counted block, in their order; None where that was not recorded.
    `end_check`: the repeated computation at the end; `batch_checks`: the last batches of input pipelines compared with the
    order; None and empty if the process did not check.
    """

    folder: Path
    job: Job
    method: int = 0
    applied: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, Any] = field(default_factory=dict)
    phases_ns: dict[str, int] = field(default_factory=dict)
    first_step_since_spawn_ns: int | None = None
    blocks: tuple[Block, ...] = ()
    outputs: dict[str, float] = field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()
    shapes: dict[int, Shapes] = field(default_factory=dict)
    exchanged: Exchanged | None = None
    profiled: Profiled | None = None
    graphs: tuple[GraphStage, ...] = ()
    reduced: tuple[Reduced, ...] = ()
    staleness: Staleness | None = None
    peak_resident_bytes: int | None = None
    peak_device_bytes: int | None = None
    memory: dict[str, PhaseMemory] = field(default_factory=dict)
    warnings: tuple[dict[str, Any], ...] = ()
    error: tuple[str, str] | None = None
    done: bool = False
    others: "tuple[Trial, ...] | None" = ()
    imported: dict[str, str] | None = None
    watched: Watched | None = None
    withheld_ns: tuple[int, ...] | None = None
    end_check: EndCheck | None = None
    batch_checks: tuple[BatchCheck, ...] = ()
    pid: int = 0

    @property
    def batch(self) -> int:
        """Samples per step of this process: the batch of its case, or the result of a search for the largest batch."""
        return self.job.schedule.batch or self.job.case.batch

    @property
    def evaluation(self) -> Evaluation | None:
        """The last evaluation; None without any."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def epochs(self) -> dict[int, list[Block]]:
        """The blocks of each epoch, by its number from 1; empty where the process does not train whole epochs."""
        found: dict[int, list[Block]] = {}
        trains = self.job.case.task == TRAINING
        for block in self.blocks:
            if trains and block.epoch:
                found.setdefault(block.epoch, []).append(block)
        return found

    @property
    def counts_first_step(self) -> bool:
        """Whether the first step of the process counts, with its compilation."""
        return bool(self.blocks) and self.blocks[0].phase == "counted"

    @property
    def epochs_ns(self) -> dict[int, int]:
        """The training time of each epoch in nanoseconds, without the evaluation after it."""
        return {epoch: sum(block.elapsed_ns for block in blocks) for epoch, blocks in self.epochs.items()}

    def memory_of(self, phase: str) -> int | None:
        """Return the peak memory of a phase in bytes: on the device if the framework counts it; None where it is not known."""
        found = self.memory.get(phase)
        return (found.device_bytes or found.resident_bytes) if found else None

    def counted(self, source: str) -> list[Block]:
        """Return the counted blocks of one input."""
        return [block for block in self.blocks if block.input == source and block.phase == "counted"]

    @property
    def latencies_ns(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The time of each batch of an inference that was timed alone, float64 nanoseconds."""
        return self.steps_ns("cached", (LATENCY,))

    @property
    def counted_span_ns(self) -> tuple[int, int]:
        """Monotonic clock at the start of the first and at the end of the last counted block; (0, 0) without any."""
        spans = [(each.start_ns, each.start_ns + each.elapsed_ns) for each in self.blocks if each.phase == "counted"]
        return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0)

    def location_ns(self, source: str) -> float | None:
        """Return nanoseconds per step: the total time of the counted blocks over their steps; None without any."""
        blocks = self.counted(source)
        steps = sum(block.steps for block in blocks)
        return sum(block.elapsed_ns for block in blocks) / steps if steps else None

    def steps_ns(self, source: str, phases: Collection[str] = ("counted",)) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the time of each step in order, float64 nanoseconds.

        If calls return when their work is done, this is the time between the returns of consecutive calls. If they
        return earlier (asynchronous execution), only the mean of a block is known; all its steps get the mean.
        """
        blocks = [block for block in self.blocks if block.input == source and block.phase in phases]
        parts = [_step_times(block, stamps) for block, stamps in zip(blocks, self._stamps(blocks), strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def losses(self, source: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the loss of each step on one input in order, float32."""
        parts = self._losses([block for block in self.blocks if block.input == source])
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def first_losses(self, count: int) -> list[float]:
        """Return the losses of the first steps of the process, at most `count`."""
        found: list[float] = []
        for block in self.blocks:
            if len(found) < count:
                found += self._losses([block])[0].tolist()
        return found[:count]

    def host_share(self, source: str) -> float | None:
        """Return the share of a block's time until its last call returned; near 1 the host limits the speed."""
        blocks = self.counted(source)
        elapsed = sum(block.elapsed_ns for block in blocks)
        return sum(float(stamps[-1]) for stamps in self._stamps(blocks)) / elapsed if elapsed else None

    def step_times(self, block: Block) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the time of each step of one block, float64 nanoseconds, as `steps_ns` does."""
        return _step_times(block, self._stamps([block])[0])

    def _stamps(self, blocks: Sequence[Block]) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
        """Return when the call of each step returned, float64 nanoseconds since the start of its block."""
        recorded = self._recorded(protocol.SAMPLES, "<i8", blocks)
        return [(stamps - block.start_ns).astype(np.float64) for block, stamps in zip(blocks, recorded, strict=True)]

    def check_files(self) -> None:
        """Check that the binary files contain the values that the blocks announce; UserError names one that does not."""
        self.check_times()
        for block, losses in zip(self.blocks, self._losses(self.blocks), strict=True):
            if self.done and not np.isfinite(losses).all():
                what = f"a loss from step {block.first_step} on is not a finite number"
                raise self._damaged(self.folder / protocol.LOSSES, f"is damaged: {what}")

    def check_times(self) -> None:
        """Check that the times of the steps of every block lie in that block; UserError: they do not."""
        for block, stamps in zip(self.blocks, self._recorded(protocol.SAMPLES, "<i8", self.blocks), strict=True):
            since = stamps - block.start_ns
            if since[0] < 0 or since[-1] > block.elapsed_ns or (since[1:] < since[:-1]).any():
                what = f"the times of the block from step {block.first_step} on do not lie in that block"
                raise self._damaged(self.folder / protocol.SAMPLES, f"is damaged: {what}")

    def _losses(self, blocks: Sequence[Block]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        """Return the losses of each block; an inference has none."""
        if self.job.case.task == INFERENCE:
            return [np.zeros(0, np.float32) for _ in blocks]
        return self._recorded(protocol.LOSSES, "<f4", blocks)

    def _recorded(self, name: str, dtype: str, blocks: Sequence[Block]) -> list[np.ndarray[Any, Any]]:
        """Return the values of each block. The file is opened once: a process has hundreds of blocks of a few steps."""
        if not blocks:
            return []
        path, size = self.folder / name, np.dtype(dtype).itemsize
        try:
            held = path.stat().st_size
            for block in blocks:  # before the file is opened, because a pipe would be waited for
                if held < (block.first_step + block.steps) * size:
                    wrong = f"is too short: {block.steps} values are expected from step {block.first_step} on"
                    raise self._damaged(path, wrong)
            with path.open("rb") as file:
                return [_read(file, dtype, block.first_step * size, block.steps * size) for block in blocks]
        except OSError as error:
            raise self._damaged(path, f"cannot be read ({error.strerror})") from None

    def _damaged(self, path: Path, wrong: str) -> UserError:
        return UserError(f"{path} {wrong}. To leave this trial out, delete {self.folder}.")


def _read(file: BinaryIO, dtype: str, place: int, length: int) -> np.ndarray[Any, Any]:
    file.seek(place)
    return np.frombuffer(file.read(length), dtype)


def _step_times(block: Block, stamps: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the time of each step of a block; `stamps`: when its calls returned, nanoseconds since its start."""
    if stamps[-1] < SYNCHRONOUS * block.elapsed_ns:
        return np.full(block.steps, block.elapsed_ns / block.steps)
    steps = np.diff(stamps, prepend=0.0)
    steps[-1] += block.elapsed_ns - stamps[-1]
    return steps


def read_all(run: Path) -> tuple[list[Trial], list[str]]:
    """Return the ended trials of a run's folder, sorted by round and attempt, and a sentence for every unreadable one."""
    found: list[Trial] = []
    damaged: list[str] = []
    for folder in sorted((run / FOLDER).glob("*/")):
        if (folder / JOB).exists():  # otherwise the process was killed before it got its job
            try:
                trial = read(folder)
                trial.check_files()
                found.append(trial)
                if trial.done and trial.others is None:
                    damaged.append(NO_RANKS.format(trial.folder))
            except UserError as error:
                damaged.append(str(error))
    return [trial for trial in found if trial.done or trial.error], damaged


def has_finished(run: Path) -> bool:
    """Report whether a process of a run's folder has finished. Its files are not checked."""
    return any(_is_finished(path) for path in (run / FOLDER).glob(f"*/{protocol.EVENTS}"))


def _is_finished(path: Path) -> bool:
    try:
        return any(event["event"] == "done" for event in protocol.read_events(path))
    except (OSError, ValueError):
        return False


def read(folder: Path) -> Trial:
    """Read a trial from its job and events; UserError names the damaged file, and the line if it has lines."""
    try:
        try:
            job = recorded_jobs.read(records.read_text(folder / JOB))
        except ValueError as error:
            message = f"{JOB} is damaged ({error})"
            raise ValueError(message) from None
        first = replay(folder, job, protocol.read_events(folder / protocol.EVENTS))
        return replace(first, others=_other_ranks(first))
    except (ValueError, OSError) as error:
        reason = str(error).rstrip(".")
        raise UserError(f"Trial {folder.name} cannot be read: {reason}. To leave it out, delete {folder}.") from None


def processes(job: Job) -> int:
    """Return the number of ranks that are processes of their own; 1 where one process drives all devices."""
    return parts_of(job.case.strategy) if job.spread and job.spread.several_processes else 1


def _other_ranks(first: Trial) -> tuple[Trial, ...] | None:
    """Return the records of the other ranks of a trial, by rank; empty for a single process.

    None: the record of a rank is missing, damaged, has no end, or has other blocks than that of the first rank.
    """
    others = []
    for rank in range(1, processes(first.job)):
        folder = protocol.rank_folder(first.folder, rank)
        try:
            one = replay(folder, first.job, protocol.read_events(folder / protocol.EVENTS))
            one.check_times()
        except (UserError, ValueError, OSError):
            return None
        if not one.done or _of_all_ranks(one) != _of_all_ranks(first):
            return None
        others.append(one)
    return tuple(others)


def _of_all_ranks(trial: Trial) -> list[tuple[Any, ...]]:
    """Return the part of the blocks that must be equal on all ranks, because they compute every step together."""
    return [(each.input, each.phase, each.steps, each.first_step, each.epoch) for each in trial.blocks]


def replay(folder: Path, job: Job, events: Iterable[dict[str, Any]]) -> Trial:
    """Build a Trial from its job and its events; ValueError names the line of an invalid event."""
    found: dict[str, Any] = {"folder": folder, "job": job, "phases_ns": {}, "shapes": {}}
    blocks: list[Block] = []
    evaluations: list[Evaluation] = []
    warnings: list[dict[str, Any]] = []
    outputs: dict[str, float] = {}
    graphs: list[GraphStage] = []
    reduced: list[Reduced] = []
    for number, event in enumerate(events, 1):
        match checked(event, number):
            case Hello(method, pid):
                found |= {"method": method, "pid": pid}
            case Applied(applied, libraries):
                found |= {"applied": applied, "libraries": libraries}
            case Phase(name, elapsed_ns, since_spawn_ns):
                found["phases_ns"][name] = elapsed_ns
                if name == "first-step":
                    found["first_step_since_spawn_ns"] = since_spawn_ns
            case Block() as block:
                blocks.append(block)
            case Evaluated(steps, samples, elapsed_ns, epoch):
                predictions = tensors.read(protocol.predictions_folder(folder, epoch)) if samples else {}
                scores, reason = _scores(job.metric, predictions) if samples else ({}, "")
                evaluations.append(Evaluation(steps, scores, elapsed_ns, epoch))
                warnings += [{"name": protocol.NOT_SCORED, "reason": reason}] if reason else []
            case Shapes() as shapes:
                found["shapes"][shapes.epoch] = shapes
            case Outputs(batch, fingerprints):
                outputs |= {f"inference{batch}/{name}": value for name, value in fingerprints.items()}
            case Imported(files):
                found["imported"] = files
            case EndCheck() as ended:
                found["end_check"] = ended
            case BatchCheck() as compared:
                found["batch_checks"] = (*found.get("batch_checks", ()), compared)
            case Exchanged() as exchanged:
                found["exchanged"] = exchanged
            case Profiled() as profiled:
                found["profiled"] = profiled
            case Memory(resident, device, phases):
                found |= {"peak_resident_bytes": resident, "peak_device_bytes": device}
                found["memory"] = {each.name: each for each in phases}
            case GraphStage() as graph:
                graphs.append(graph)
            case Staleness() as staleness:
                found["staleness"] = staleness
            case Watched() as watched:
                found["watched"] = watched
            case Withheld(blocks_ns):
                found["withheld_ns"] = blocks_ns
            case Reduced() as block:
                reduced.append(block)
            case {"name": str()} as warning:
                warnings.append({key: warning[key] for key in warning.keys() - {"v", "event", "t_ns"}})
            case Error(kind, message):
                found["error"] = (kind, message)
            case Done():
                found["done"] = True
    return Trial(
        **found,
        blocks=tuple(blocks),
        outputs=outputs,
        evaluations=tuple(evaluations),
        warnings=tuple(warnings),
        graphs=tuple(graphs),
        reduced=tuple(reduced),
    )


def _scores(metric: str, predictions: Mapping[str, np.ndarray[Any, Any]]) -> tuple[dict[str, float], str]:
    """Return the scores of predictions, or none and why: the times of the trial count all the same."""
    lacking = [name for name in metrics.NEEDED.get(metric, ()) if name not in predictions]
    if lacking:
        return {}, f"there is no array {listed([repr(name) for name in lacking])}"
    try:
        return metrics.score(metric, predictions), ""
    except Exception as error:  # the libraries of the metrics raise all kinds of errors if arrays do not match
        return {}, f"{type(error).__name__}: {' '.join(str(error).split())}"
