"""Read a trial folder as one Trial; used by the launcher and the index."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.statistics import metrics
from steelyard_worker import protocol, tensors
from steelyard_worker.protocol import Job

JOB = "job.json"

# If the last call of a block returned after this share of the block's time, its calls returned when their work was done.
SYNCHRONOUS = 0.97


@dataclass(frozen=True)
class Block:
    """Consecutive steps between two synchronisations.

    `first_step` is the index of its first value in samples.i64 and losses.f32; times are in nanoseconds. `cpu_ns` is the CPU time
    of all threads of the process, 0 where it was not recorded.
    """

    input: str
    phase: str
    steps: int
    start_ns: int
    elapsed_ns: int
    first_step: int
    cpu_ns: int = 0


@dataclass(frozen=True)
class Evaluation:
    """Scores of the test metric, by name, after a number of training steps."""

    steps: int
    scores: dict[str, float]
    elapsed_ns: int


@dataclass(frozen=True)
class Trial:
    """Everything that one worker process recorded."""

    folder: Path
    job: Job
    method: int = 0
    applied: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, Any] = field(default_factory=dict)
    phases_ns: dict[str, int] = field(default_factory=dict)
    first_step_since_spawn_ns: int | None = None
    blocks: tuple[Block, ...] = ()
    evaluation: Evaluation | None = None
    peak_resident_bytes: int | None = None
    peak_device_bytes: int | None = None
    warnings: tuple[dict[str, Any], ...] = ()
    error: tuple[str, str] | None = None
    done: bool = False

    def counted(self, source: str) -> list[Block]:
        """Return the counted blocks of one input."""
        return [block for block in self.blocks if block.input == source and block.phase == "counted"]

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
        parts = [self._steps(block) for block in self.blocks if block.input == source and block.phase in phases]
        return np.concatenate(parts) if parts else np.zeros(0)

    def losses(self, source: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the loss of each step on one input in order, float32."""
        parts = [self._recorded(protocol.LOSSES, "<f4", block) for block in self.blocks if block.input == source]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def first_losses(self, count: int) -> list[float]:
        """Return the losses of the first steps of the process, at most `count`."""
        found: list[float] = []
        for block in self.blocks:
            if len(found) < count:
                found += self._recorded(protocol.LOSSES, "<f4", block).tolist()
        return found[:count]

    def host_share(self, source: str) -> float | None:
        """Return the share of a block's time until its last call returned; near 1 the host limits the speed."""
        blocks = self.counted(source)
        elapsed = sum(block.elapsed_ns for block in blocks)
        return sum(float(self._stamps(block)[-1]) for block in blocks) / elapsed if elapsed else None

    def _steps(self, block: Block) -> np.ndarray[Any, np.dtype[np.float64]]:
        stamps = self._stamps(block)
        if stamps[-1] < SYNCHRONOUS * block.elapsed_ns:
            return np.full(block.steps, block.elapsed_ns / block.steps)
        steps = np.diff(stamps, prepend=0.0)
        steps[-1] += block.elapsed_ns - stamps[-1]
        return steps

    def _stamps(self, block: Block) -> np.ndarray[Any, np.dtype[np.float64]]:
        return (self._recorded(protocol.SAMPLES, "<i8", block) - block.start_ns).astype(np.float64)

    def _recorded(self, name: str, dtype: str, block: Block) -> np.ndarray[Any, Any]:
        path, wrong = self.folder / name, ""
        try:
            values = np.fromfile(path, dtype, block.steps, offset=block.first_step * np.dtype(dtype).itemsize)
            if len(values) != block.steps:
                wrong = f"is too short: {block.steps} values are expected from step {block.first_step} on"
        except OSError as error:
            wrong = f"cannot be read ({error.strerror})"
        if wrong:
            raise UserError(f"{path} {wrong}. To leave this trial out, delete {self.folder}.")
        return values


def has_finished(run: Path) -> bool:
    """Report whether a process of a run's folder has finished. Its files are not checked."""
    return any(b'"event": "done"' in path.read_bytes() for path in run.glob(f"trials/*/{protocol.EVENTS}"))


def read(folder: Path) -> Trial:
    """Read a trial's job and events; UserError names a damaged file."""
    try:
        job = protocol.from_line((folder / JOB).read_text(encoding="utf-8"))
        return replay(folder, job, protocol.read_events(folder / protocol.EVENTS))
    except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"Trial {folder.name} cannot be read: {error}. To leave it out, delete {folder}.") from None


def replay(folder: Path, job: Job, events: Iterable[dict[str, Any]]) -> Trial:
    """Build a Trial from its job and its events."""
    found: dict[str, Any] = {"folder": folder, "job": job, "phases_ns": {}}
    blocks: list[Block] = []
    warnings: list[dict[str, Any]] = []
    for event in events:
        match event["event"]:
            case "hello":
                found["method"] = event["method"]
            case "applied":
                found |= {"applied": event["applied"], "libraries": event["libraries"]}
            case "phase":
                found["phases_ns"][event["name"]] = event["elapsed_ns"]
                if event["name"] == "first-step":
                    found["first_step_since_spawn_ns"] = event["since_spawn_ns"]
            case "samples":
                blocks.append(Block(**{key: event[key] for key in Block.__dataclass_fields__ if key in event}))
            case "evaluated":
                predictions = tensors.read(folder / protocol.PREDICTIONS)
                scores = metrics.score(job.metric, predictions) if event["samples"] else {}
                found["evaluation"] = Evaluation(event["steps"], scores, event["elapsed_ns"])
            case "memory":
                found |= {key: event[key] for key in ("peak_resident_bytes", "peak_device_bytes")}
            case "warning":
                warnings.append({key: event[key] for key in event.keys() - {"v", "event", "t_ns"}})
            case "error":
                found["error"] = (event["kind"], event["message"])
            case "done":
                found["done"] = True
    return Trial(**found, blocks=tuple(blocks), warnings=tuple(warnings))
