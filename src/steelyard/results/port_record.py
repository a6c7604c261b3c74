"""The record of a port check: what was compared, and where two models part. A page of it needs this file alone."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.version import VERSION
from steelyard_worker import records

FILE = "port.json"
FORMAT = 1


@dataclass(frozen=True)
class Side:
    """One model. `kind`: of its object, such as torch.nn.Module; `parameters`: number of trained scalars."""

    name: str
    framework: str
    kind: str
    libraries: dict[str, str]
    tensors: int
    parameters: int


@dataclass(frozen=True)
class Mapped:
    """One pair of the map. `how`: the transform in words; `found_by`: content, order, name or given.

    `equal`: whether the values are; `differ_by`: their relative distance where not.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    how: str = ""
    found_by: str = "content"
    equal: bool = True
    differ_by: float = 0.0


@dataclass(frozen=True)
class Compared:
    """One pair of modules, or an output of the models: the relative distances of what they receive and return."""

    left: str
    right: str
    kind: str
    inputs: float
    outputs: float


@dataclass(frozen=True)
class Difference:
    """A place where the two models part while both compute on the same values.

    `where`: "in" the pair of modules, "before" it, or at an "output" of the models; in training also in the "loss", a "gradient",
    a "statistic" or an "update" of a tensor, or an array of a
    "loader". `inputs`, `outputs`: relative distances there.
    `cause`: a sentence; empty if no hypothesis reproduces both sides. `tried`: families of hypotheses that were tried.
    `part`: how much of the distance at the outputs goes with it, from 0 to 1; None where there is none at the outputs.
    """

    where: str
    left: str
    right: str
    left_type: str
    right_type: str
    inputs: float
    outputs: float
    cause: str = ""
    tried: tuple[str, ...] = ()
    part: float | None = None


@dataclass(frozen=True)
class Stage:
    """One part of training that is compared, such as the gradients. `compared`: number of values or tensors.

    `unseen`: why it was not compared; empty if it was. `failed`: a side should have computed it, and could not. `facts`: what was
    measured, in a sentence.
    """

    name: str
    unseen: str = ""
    compared: int = 0
    differences: tuple[Difference, ...] = ()
    facts: str = ""
    failed: bool = False


@dataclass(frozen=True)
class PortRecord:
    """Everything that a check found out. `precision`: float64 or float32.

    `tolerance`: the relative distance that counts as rounding. `training`: what of training was compared, in order.

    `outputs`: names of outputs -> relative distance before anything was replaced. `unpaired_outputs`: those that only one model
    has. `without_numbers`: outputs without a finite number, of which nothing can be said.
    """

    port: str
    date: str
    left: Side
    right: Side
    mapped: tuple[Mapped, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    precision: str
    tolerance: float
    outputs: dict[str, float]
    compared: tuple[Compared, ...] = ()
    differences: tuple[Difference, ...] = ()
    unfinished: str = ""
    format: int = FORMAT
    version: str = VERSION
    unpaired_outputs: tuple[str, ...] = ()
    without_numbers: tuple[str, ...] = ()
    training: tuple[Stage, ...] = ()


def write(folder: Path, record: PortRecord) -> None:
    """Write the record into a folder."""
    atomic.write_text(folder / FILE, records.to_line(record))


def read(folder: Path) -> PortRecord:
    """Read a record. UserError: there is none, or it is damaged or of another format."""
    path = folder / FILE
    try:
        raw = records.parse(records.read_text(path))
    except OSError:
        raise UserError(f"{folder} has no {FILE}, so it is no record of a port check.") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}).") from None
    known: Any = raw.get("format") if isinstance(raw, dict) else None
    if known != FORMAT:
        raise UserError(f"{path} has format {known!r}; this version reads format {FORMAT}.")
    try:
        found: PortRecord = records.build(PortRecord, raw)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}).") from None
    return found


def as_dict(record: PortRecord) -> dict[str, Any]:
    """Return the record as plain values."""
    return asdict(record)
