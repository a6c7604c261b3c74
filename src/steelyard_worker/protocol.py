"""The process border: one Job goes down as a JSON line, events come up as JSON lines in an append-only file.

The events file is the record: the live view, the store and its rebuild read it through the same `read_events`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Protocol history
# 1  hello, applied, phase, samples, losses, evaluated, tensors, memory, error, done
VERSION = 1

# Bumped by every change that can move a number; listed in the changelog under "Measurement".
METHOD = 1

EVENTS = "events.jsonl"
# One value per step, in the order of the steps: the clock when its call had returned (ns), and its loss.
SAMPLES = "samples.i64"
LOSSES = "losses.f32"
LOG = "output.log"
# Tensors folder: the predictions on the test split as small arrays (samples, ...); the metric scores them.
PREDICTIONS = "predictions"
# Beside prepared text: how it was cut into word pieces. The record must be readable when the prepared data are gone.
ENCODING = "tokenizer.json"


class Refusal(Exception):
    """The worker cannot go on for a reason it understands. `kind` is one of ERROR_KINDS."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# What follows the refusal of a native update rule that a framework does not have.
WRITTEN_OUT = "With --optimizer-implementation reference it is written out by hand."

ERROR_KINDS = (
    "unsupported",  # the framework cannot do this; the message says how that was shown
    "setting",  # a setting did not take effect when read back
    "out-of-memory",
    "nan-loss",
    "implementation",  # the implementation does not hold the tensors that the network names
    "crash",  # anything else, with the last line of the traceback
    "killed",  # written by the launcher: the process ended without a word
    "hung",  # written by the launcher: no event within the time allowed
    "disk-full",
)


@dataclass(frozen=True)
class Settings:
    """What the adapter applies and then reads back from the framework."""

    mode: str
    device: str = "cpu"
    threads: int = 0  # 0: as the framework comes
    precision: str = "float32"
    deterministic: bool = False
    knobs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Optimizer:
    """An update rule with its constants; `decay` lists the tensors under weight decay.

    clip: largest global L2 norm of all gradients together, scaled down to it before anything else; 0: no clipping.
    implementation: "native" (the framework's own) or "reference" (written out by hand, exactly the canonical formula).
    form: "canonical" (epsilon outside the square root, after bias correction) or "epsilon-hat".
    correction: precision in which 1 - beta^t is computed: "float64" or "float32".
    """

    name: str
    learning_rate: float
    momentum: float = 0.0
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decay: tuple[str, ...] = ()
    clip: float = 0.0
    implementation: str = "native"
    form: str = "canonical"
    correction: str = "float64"

    def corrections(self, t: int) -> tuple[float, float]:
        """Return 1 - beta1^t and 1 - beta2^t, computed in the precision that the rule declares.

        In float32 every power is rounded once: libraries' own are off by a unit in the last place at times, no two alike.
        """
        if self.correction == "float64":
            return 1 - self.beta1**t, 1 - self.beta2**t
        first, second = (_single(1 - _single(_single(beta) ** t)) for beta in (self.beta1, self.beta2))
        return first, second


def _single(value: float) -> float:
    """Round to float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


@dataclass(frozen=True)
class Data:
    """Where batches come from: prepared arrays with an order, or one seeded synthetic batch; all memory-mapped."""

    synthetic: str  # tensors folder: one batch of every input
    prepared: str = ""  # tensors folder: train/<input>, test/<input>, maybe lookup; empty: synthetic only
    order: str = ""  # tensors folder: `order`, int32 (steps, batch)
    evaluation_limit: int = 0  # test samples used; 0: all


@dataclass(frozen=True)
class Plan:
    """How one process measures. Steps are optimizer steps; seconds are wall time."""

    inputs: tuple[str, ...] = ("pipeline", "cached")
    warmup: str = "adaptive"  # "adaptive" | "steps:N" | "epochs:N"
    counted: str = "optimal"  # "optimal" | "steps:N" | "epochs:N"
    warmup_min_steps: int = 10
    warmup_min_s: float = 0.5
    warmup_cap_steps: int = 300
    warmup_cap_s: float = 120.0
    counted_min: int = 10
    counted_max: int = 200
    noise_ratio: float = 4.0  # s_step / s_process, for the optimal number of steps per process
    block_min_s: float = 0.5
    block_min_steps: int = 5
    train_steps: int = 0  # before an adaptive warm-up, train this many steps in all, so that evaluations are comparable
    evaluate: bool = False
    loader_workers: int = 0


@dataclass(frozen=True)
class Certify:
    """What a certify task saves: one folder of tensors per perturbation. Perturbation 0 is none, others are seeds of the noise.

    `sample`: number of elements saved of a larger tensor, at fixed places; 0: every element.
    """

    steps: int = 5
    sample: int = 0
    perturbations: tuple[int, ...] = (0,)
    noise: float = 2.0**-20  # relative standard deviation


@dataclass(frozen=True)
class Job:
    """One process, one cell, once. Paths are absolute."""

    task: str  # "measure" | "certify"
    trial: str
    framework: str
    workload: str
    workload_folder: str
    preset: str
    sizes: dict[str, Any]
    settings: Settings
    optimizer: Optimizer
    weights: str
    data: Data
    folder: str
    seed: int = 0
    metric: str = "accuracy"
    plan: Plan = field(default_factory=Plan)
    certify: Certify = field(default_factory=Certify)
    spawned_ns: int = 0  # monotonic clock of the launcher, for the time to the first step
    worker_hash: str = ""
    version: int = VERSION

    @property
    def batch(self) -> int:
        """Samples per step."""
        return int(self.sizes["batch"])


def to_line(job: Job) -> str:
    """Return the job as one JSON line."""
    return json.dumps(asdict(job))


def from_line(line: str) -> Job:
    """Read a job; unknown keys are ignored, an unknown version is refused with ValueError."""
    raw = json.loads(line)
    if raw.get("version") != VERSION:
        message = f"This worker speaks protocol {VERSION}, the job is written in {raw.get('version')!r}."
        raise ValueError(message)
    job: Job = _build(Job, raw)
    return job


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _build(kind: Any, raw: dict[str, Any]) -> Any:
    hints = _hints(kind)
    known = {f.name: hints[f.name] for f in fields(kind) if f.name in raw}
    return kind(**{name: _convert(hint, raw[name]) for name, hint in known.items()})


def _convert(hint: Any, value: Any) -> Any:
    if is_dataclass(hint):
        return _build(hint, value)
    return tuple(value) if isinstance(value, list) and str(hint).startswith("tuple") else value


class EventWriter:
    """Append events, each flushed at once, so that a killed worker leaves everything it said."""

    def __init__(self, path: Path, now: Any) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._now = now

    def write(self, event: str, **values: Any) -> None:
        """Append one event with the version and the monotonic time in nanoseconds."""
        self._file.write(json.dumps({"v": VERSION, "event": event, "t_ns": self._now(), **values}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a file; a last line cut short by a kill is left out, an unknown version is refused."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                event = json.loads(line)
            except ValueError:
                if line.endswith("\n"):
                    message = f"{path}, line {number}: not an event: {line[:80]!r}."
                    raise ValueError(message) from None
                return
            if event.get("v") != VERSION:
                message = f"{path}, line {number}: protocol {event.get('v')!r} is not known (known: {VERSION})."
                raise ValueError(message)
            yield event
