"""A trial folder -> one Trial. The launcher and the index both use `read`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.statistics import metrics
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard_worker.protocol import Job

JOB = "job.json"

# A block whose last call returned this late ran its steps one after the other as they were called.
SYNCHRONOUS = 0.97


@dataclass(frozen=True)
class Block:
    """Consecutive steps between two synchronisations; `first_step` is its place in samples.i64 and losses.f32."""

    input: str
    phase: str
    steps: int
    start_ns: int
    elapsed_ns: int
    first_step: int


@dataclass(frozen=True)
class Evaluation:
    """What the metric made of the predictions on the test split, after a number of training steps; `scores` by name."""

    steps: int
    scores: dict[str, float]
    elapsed_ns: int


@dataclass(frozen=True)
class Trial:
    """Everything one process left behind."""

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
        counted = [block for block in self.blocks if block.phase == "counted"]
        ends = [block.start_ns + block.elapsed_ns for block in counted]
        return (min(block.start_ns for block in counted), max(ends)) if counted else (0, 0)

    def location_ns(self, source: str) -> float | None:
        """Time per step of the counted blocks: total time over total steps; None without any."""
        blocks = self.counted(source)
        steps = sum(block.steps for block in blocks)
        return sum(block.elapsed_ns for block in blocks) / steps if steps else None

    def steps_ns(self, source: str, phases: Iterable[str] = ("counted",)) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Time of each step, float64 nanoseconds, in order.

        Between the returns of consecutive calls where calls return when the work is done; where they return earlier
        (asynchronous execution) only a block's mean is known, and every step of the block is given it.
        """
        wanted = set(phases)
        parts = [self._steps(block) for block in self.blocks if block.input == source and block.phase in wanted]
        return np.concatenate(parts) if parts else np.zeros(0)

    def losses(self, source: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Loss of each step on one input, float32, in the order of the steps."""
        parts = [self._recorded(protocol.LOSSES, "<f4", block) for block in self.blocks if block.input == source]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def host_share(self, source: str) -> float | None:
        """Time until the last call of a block had returned, over the block's time: near 1 the host is the limit."""
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
        path = self.folder / name
        try:
            values = np.fromfile(path, dtype, block.steps, offset=block.first_step * np.dtype(dtype).itemsize)
        except OSError as error:
            raise UserError(
                f"{path} cannot be read ({error.strerror}). Delete {self.folder} to leave this process out."
            ) from None
        if len(values) != block.steps:
            raise UserError(
                f"{path} ends too early: it should hold {block.steps} values from step {block.first_step} on. "
                f"Delete {self.folder} to leave this process out."
            )
        return values


def read(folder: Path) -> Trial:
    """Read a trial's job and events; a damaged file is a UserError that names it."""
    try:
        job = protocol.from_line((folder / JOB).read_text(encoding="utf-8"))
        return replay(folder, job, protocol.read_events(folder / protocol.EVENTS))
    except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"Trial {folder.name} cannot be read: {error}. Delete {folder} to leave it out.") from None


def replay(folder: Path, job: Job, events: Iterable[dict[str, Any]]) -> Trial:
    """Fold events into a Trial."""
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
                blocks.append(_block(event))
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


def _block(event: dict[str, Any]) -> Block:
    return Block(**{key: event[key] for key in Block.__dataclass_fields__})
