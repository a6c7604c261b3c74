"""A port as a folder: `port.toml` names two sides and their inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks
from steelyard.errors import UserError, nearest
from steelyard.files import settings_files

if TYPE_CHECKING:
    from pathlib import Path

FILE = "port.toml"
SIDES = 2


@dataclass(frozen=True)
class SideSpec:
    """One table [sides.NAME]. `framework`: whose managed environment runs it; `env`: an interpreter of the user's own instead.

    `file`: the Python file with model(), beside port.toml; NAME.py by default.
    """

    name: str
    framework: str
    file: str = ""
    env: str = ""

    def path(self, folder: Path) -> Path:
        """Return the absolute path of the side's Python file."""
        return folder / (self.file or f"{self.name}.py")


@dataclass(frozen=True)
class InputSpec:
    """One table [inputs.NAME] or [targets.NAME]: an array from a file, or one that is drawn.

    shape: with the batch. dtype: of NumPy, such as float32 or int64. low, high: floats are uniform between them, integers from
    low to high - 1. file: an .npy file beside port.toml, instead of shape, dtype, low and high. seed: of what is drawn.
    """

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    file: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Port:
    """Two sides, in the order of the file: the first is what was ported, the second is the port.

    targets: arrays that only loss() gets, such as labels.
    """

    folder: Path
    sides: tuple[SideSpec, SideSpec]
    inputs: tuple[InputSpec, ...]
    targets: tuple[InputSpec, ...] = ()


@dataclass(frozen=True)
class _File:
    sides: dict[str, Any]
    inputs: dict[str, Any] = field(default_factory=dict)
    targets: dict[str, Any] = field(default_factory=dict)
    contract: int = 1


def read(folder: Path) -> Port:
    """Read a port's folder. UserError: a file is missing, or a key or a value in it is wrong."""
    folder = folder.expanduser().absolute()
    path = folder / FILE
    if not path.is_file():
        raise UserError(f"{folder} has no {FILE}. Make one with: steelyard port new FOLDER -f FRAMEWORK -f FRAMEWORK")
    raw: _File = settings_files.build(path, settings_files.read(path), "", _File)
    settings_files.check_one_of(path, "contract", raw.contract, (1,))
    if len(raw.sides) != SIDES:
        sentence = f"there are {len(raw.sides)} tables [sides.NAME]. Two models are compared, so name two."
        raise settings_files.wrong(path, "sides", "", sentence)
    first, second = (_side(path, name, table) for name, table in raw.sides.items())
    if not raw.inputs:
        sentence = "there is no table [inputs.NAME]. Describe each array that the models take."
        raise settings_files.wrong(path, "inputs", "", sentence)
    inputs = tuple(_input(path, f"inputs.{name}", name, table) for name, table in raw.inputs.items())
    targets = tuple(_input(path, f"targets.{name}", name, table) for name, table in raw.targets.items())
    if both := raw.inputs.keys() & raw.targets.keys():
        sentence = f"'{min(both)}' is an input as well; loss() gets both by name, so give it another name."
        raise settings_files.wrong(path, min(both), "targets", sentence)
    return Port(folder, (first, second), inputs, targets)


def _side(path: Path, name: str, table: Any) -> SideSpec:
    where = f"sides.{name}"
    found: SideSpec = settings_files.build(path, table, where, SideSpec, name=name)
    known = list(frameworks.all_frameworks())
    if found.framework not in known:
        sentence = f"'{found.framework}' is no framework that steelyard knows.{nearest(found.framework, known)}"
        raise settings_files.wrong(path, "framework", where, sentence)
    if not found.path(path.parent).is_file():
        sentence = f"there is no file {found.path(path.parent).name}. It has model(), which returns your model."
        raise settings_files.wrong(path, "file", where, sentence)
    return found


def _input(path: Path, where: str, name: str, table: Any) -> InputSpec:
    found: InputSpec = settings_files.build(path, table, where, InputSpec, name=name)
    if bool(found.file) == bool(found.shape):
        raise settings_files.wrong(path, "", where, "give either 'shape' or 'file'.")
    if found.file and not (path.parent / found.file).is_file():
        raise settings_files.wrong(path, "file", where, f"there is no file {found.file} beside {FILE}.")
    if found.low >= found.high:
        raise settings_files.wrong(path, "high", where, f"'high' must be above 'low', which is {found.low:g}.")
    return found
