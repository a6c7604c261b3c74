"""The protocol between orchestrator and worker: a Job is sent as one JSON line, events are appended to a file as JSON lines.

The events file is the primary record of a process; the live view and the index are derived from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from steelyard_worker import records
from steelyard_worker.case import Case  # noqa: TC001 - read when a job is built from JSON
from steelyard_worker.strategy import Spread  # noqa: TC001 - the same

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Bound here, before an implementation is loaded: a library that it imports may put another `dumps` into `json`.
_as_text = json.dumps

# Protocol history
# 1  hello, applied, phase, samples, losses, evaluated, tensors, memory, error, done
# 2  a job has its case, round and attempt as fields; the cached batch and the folder `predictions` got their names; blocks and
#    evaluations name their epoch, and a job may have learning rates
VERSION = 2

# Incremented by every change that can change a measured number; listed in the changelog under "Measurement".
METHOD = 17

EVENTS = "events.jsonl"
# One value per step, in order: the monotonic clock when the call of the step returned (ns), and the loss.
SAMPLES = "samples.i64"
LOSSES = "losses.f32"
LOG = "output.log"
# The event with the launcher's observations of a process, after the last event of the process itself.
WATCHED = "watched"
# The event in which the orchestrator records, after the round, for how long others kept the process from computing.
WITHHELD = "withheld"
# The position of every thread of a process in the code, when a signal asked for it.
PLACE = "place.txt"
# Folder of the record of another rank than the first, inside the trial's.
RANK_FOLDER = "rank"
# Folder of a profile: the framework's trace files, and the tensors folder `operations` that was read from them.
PROFILE = "profile"
# Lines in the log of a process around the profiled block: oneDNN writes its own log there, line by line.
PROFILE_BEGINS, PROFILE_ENDS = "steelyard: profiled block begins", "steelyard: profiled block ends"
# Line in the log of a process that certifies: what its libraries log from here on is the computation that is certified.
CERTIFIED_BEGINS = "steelyard: certified computation begins"
# Tensors folder: the predictions on the test split as small arrays (samples, ...); the metric scores them. Where every epoch is
# evaluated, those of epoch n are in its subfolder `epoch<n>`.
PREDICTIONS = "predictions"
# Name of the warning that the predictions could not be made, or not be scored.
NOT_SCORED = "not-scored"
# First batches of an inference whose outputs are compared with those of the certificate.
CHECKED_BATCHES = 5
# How prepared text was split into word pieces. Copied into the trial, so that predictions can be read without the data.
ENCODING = "tokenizer.json"


def predictions_folder(trial: Path, epoch: int) -> Path:
    """Return the tensors folder of the predictions after an epoch, counted from 1; 0: after a number of steps."""
    return trial / PREDICTIONS / f"epoch{epoch}" if epoch else trial / PREDICTIONS


def rank_folder(trial: Path, rank: int) -> Path:
    """Return the folder of the record of a rank: for the first, that of the trial."""
    return trial / f"{RANK_FOLDER}{rank}" if rank else trial


class Refusal(Exception):
    """The worker stops for a known reason. `kind` is one of ERROR_KINDS."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# The value of `deterministic` that an adapter reports if its framework always computes deterministically.
ALWAYS = "always"

# Added to the message that a framework has no native implementation of an update rule.
WRITTEN_OUT = "Use --optimizer-implementation reference to run the canonical formula instead."

ERROR_KINDS = (
    "unsupported",  # the framework cannot do this; the message gives the reason
    "setting",  # a setting did not take effect when read back
    "out-of-memory",
    "nan-loss",
    "nan-output",  # an output of an inference is not finite
    "ranks",  # ranks that must have equal tensors have different ones
    "implementation",  # the implementation does not have the tensors that the network lists
    "checkpoint",  # a file of weights cannot be read, or does not fit the implementation
    "altered",  # a clock or a part of the worker was replaced after the implementation was loaded
    "crash",  # anything else, with the last line of the traceback
    "killed",  # written by the launcher: the process was ended by a signal
    "hung",  # written by the launcher: no event within the time allowed
    "disk-full",
)


@dataclass(frozen=True)
class Data:
    """Where batches come from: prepared arrays in a fixed order, or one seeded synthetic batch. All are memory-mapped."""

    synthetic: str  # tensors folder: one batch of every input
    prepared: str = ""  # tensors folder: train/<input>, test/<input>, optionally lookup; empty: synthetic only
    order: str = ""  # tensors folder: `order`, indices of samples, int32 (steps, batch)
    evaluation_limit: int = 0  # test samples used; 0: all
    adversarial: str = ""  # tensors folder: the batch of a certificate's second part; empty: none
    # Axes along which every batch is cut to its longest sample: {input: ((axis without the batch, input of lengths), ...)}.
    cut: dict[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    multiple: int = 1  # to the next multiple of this


@dataclass(frozen=True)
class Length:
    """How long a phase lasts: `count` steps or epochs, or "adaptive": until a criterion is met."""

    unit: str = "adaptive"  # "adaptive" | "steps" | "epochs"
    count: int = 0


@dataclass(frozen=True)
class Schedule:
    """How one process measures. Steps are optimizer steps; seconds are elapsed time.

    Where the unit of `counted` is "epochs", that of `warmup` is as well, and whole epochs are trained from the first step on. The
    first step is counted only if all epochs are.
    """

    inputs: tuple[str, ...] = ("pipeline", "cached")
    warmup: Length = Length()
    counted: Length = Length()
    warmup_min_steps: int = 10
    warmup_min_s: float = 0.5
    warmup_cap_steps: int = 300
    warmup_cap_s: float = 120.0
    counted_min: int = 10
    counted_max: int = 200
    noise_ratio: float = 2.0  # s_step / s_process, for the optimal number of steps per process
    block_min_s: float = 0.5
    block_min_steps: int = 5
    train_steps: int = 0  # number of steps to train before an adaptive warm-up, so that test metrics are comparable
    evaluate: bool = False
    evaluate_epochs: bool = False  # with `evaluate`: after each epoch, not only after the last
    # Batches of an inference that are timed one by one: as many as fit into `latency_s`, within these limits.
    latency_fewest: int = 20
    latency_most: int = 500
    latency_s: float = 5.0
    # Samples per step in place of the case's, repeated or cut from the synthetic batch; 0: the case's own.
    batch: int = 0
    failed_batch: int = 0  # the smallest batch that a search for the largest one found too large; 0: none
    # Contenders of a round take turns: each waits before every counted block. The most blocks for the sake of turns; 0: no turns.
    turns: int = 0
    turn_min_s: float = 0.25  # the shortest block then, in place of `block_min_s`

    @property
    def epochs(self) -> int:
        """The epochs of a process, or 0 if it does not train whole epochs."""
        return self.warmup.count + self.counted.count if self.counted.unit == "epochs" else 0


@dataclass(frozen=True)
class Certify:
    """What a certify task saves: one folder of tensors per perturbation. Perturbation 0 is none, others are seeds of the noise.

    `steps`: of a training, or batches of an inference. `sample`: number of elements saved of a larger tensor, at fixed places; 0:
    every element. `inner`: only the inner tensors that the network lists as probes are saved. `distinct`: every batch is filled
    with its first so many samples, again and again; 0: with its own. `normalised`: what another run of this task has saved, by
    whose batch statistics this one normalises (`steelyard_worker.normalisation`); empty: by its own.
    """

    steps: int = 5
    sample: int = 0
    perturbations: tuple[int, ...] = (0,)
    noise: float = 2.0**-20  # relative standard deviation
    inner: bool = False
    distinct: int = 0
    normalised: str = ""


@dataclass(frozen=True)
class Job:
    """The job of one process, which runs one case once. Paths are absolute.

    kind: one of `job_kinds.KINDS`.
    weights: tensors folder of the initial weights; of a job that reads a checkpoint, the file of the framework's own.
    round: 0 outside the rounds. attempt: a disturbed round is repeated under the next number.
    rates: tensors folder with the learning rate of every step, `rates` float32 (steps,); the last one stays for further steps.
    Empty: the rate of the update rule is constant.
    networks: folder of the files that another framework has exported, which the case's framework runs; empty: it has an
    implementation of its own. compared: tensors folder of the fixed inputs on which the two are compared; empty: they are not.
    spread: what the framework declares of the case's strategy; None: a single process.
    adapter_folder: the folder of a framework of the user's own; empty: a built-in framework.
    variables: environment variables that the launcher sets for this process, besides those that are passed on.
    node: the node of a cluster on which the process runs; empty: the run has no cluster.
    """

    kind: str
    case: Case
    workload_folder: str
    weights: str
    data: Data
    folder: str
    round: int = 0
    attempt: int = 0
    metric: str = "accuracy"
    rates: str = ""
    networks: str = ""
    compared: str = ""
    schedule: Schedule = field(default_factory=Schedule)
    certify: Certify = field(default_factory=Certify)
    spawned_ns: int = 0  # monotonic clock of the launcher, for the time to the first step
    spread: Spread | None = None
    worker_hash: str = ""
    adapter_folder: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    node: str = ""
    version: int = VERSION


def to_line(job: Job) -> str:
    """Return the job as one JSON line."""
    return records.to_line(job)


def from_line(line: str) -> Job:
    """Read a job; unknown keys are ignored. ValueError: another protocol version or a malformed job."""
    raw = records.parse(line)
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != VERSION:
        message = f"the job has protocol version {version!r}; this version of steelyard reads {VERSION}"
        raise ValueError(message)
    job: Job = records.build(Job, raw)
    return job


class EventWriter:
    """Append events to a file. Each is flushed at once, so that nothing is lost if the worker is killed."""

    def __init__(self, path: Path, now: Any) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")
        self._now = now

    def write(self, event: str, **values: Any) -> None:
        """Append one event with the protocol version and the monotonic time in nanoseconds."""
        self._file.write(_as_text({"v": VERSION, "event": event, "t_ns": self._now(), **values}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a file except an incomplete last line; ValueError: a damaged line or another protocol version."""
    if not path.exists():
        return
    lines = records.read_text(path, errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            event = records.parse(line)
        except ValueError:
            if number == len(lines):
                return
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            message = f"{path}, line {number}: not an event: {line[:80]!r}."
            raise ValueError(message)
        if event.get("v") != VERSION:
            message = f"{path}, line {number}: unknown protocol version {event.get('v')!r} (expected {VERSION})."
            raise ValueError(message)
        yield event
