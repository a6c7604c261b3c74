"""Write the results of a run in one of the formats, anywhere but into the folder of the run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, named
from steelyard.exports.formats import FORMATS, listed
from steelyard.files import atomic

if TYPE_CHECKING:
    from steelyard.analysis.model import View
    from steelyard.exports.formats import Format


def text(view: View, name: str) -> str:
    """Return the results as text. UserError: there is no such format, or it is no text."""
    chosen = _named(name)
    if not chosen.is_text:
        kind = f"a file: name it with -o FILE{chosen.ending}" if chosen.ending else "a folder: name it with -o FOLDER"
        raise UserError(f"The format {name} is written to {kind}")
    found: str = _module(chosen).text(view)
    return found


def export(view: View, name: str, path: Path | str) -> list[Path]:
    """Write the results and return the paths of the files. A file in a folder that exists is named like the run.

    A format that writes into a store also takes its address as `path`, such as `sqlite:///results.db`.
    UserError: there is no such format, a library is missing, or the path cannot be written or is inside the folder of the run.
    """
    chosen = _named(name)
    if chosen.is_store and "://" in str(path):
        return _in_store(view, chosen, str(path))
    target = Path(path).expanduser().absolute()
    if chosen.ending and target.is_dir():
        target /= f"{view.name}{chosen.ending}"
    check_outside(target, view.folder)
    try:
        return _in_folder(view, chosen, target) if not chosen.ending else [_file(view, chosen, target)]
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error.strerror}). Name another place with -o.") from None


def check_outside(target: Path, run: Path) -> None:
    """Raise UserError where a path is the folder of a run, or inside it: that holds the record, and nothing else."""
    if target.resolve().is_relative_to(run.resolve()):
        raise UserError(f"{target} is inside the folder of the run, which holds its record alone. Name another place.")


def _file(view: View, chosen: Format, target: Path) -> Path:
    module = _module(chosen)
    content: bytes = module.text(view).encode() if chosen.is_text else module.content(view)
    target.parent.mkdir(parents=True, exist_ok=True)
    return atomic.write_bytes(target, content)


def _in_store(view: View, chosen: Format, address: str) -> list[Path]:
    try:
        written: list[Path] = _module(chosen).write_to(view, address)
    except OSError as error:
        raise UserError(f"{address} cannot be written ({error.strerror}). Name another place with -o.") from None
    return written


def _in_folder(view: View, chosen: Format, target: Path) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = _module(chosen).write(view, target)
    return written


def _module(chosen: Format) -> Any:
    return importlib.import_module(f"steelyard.exports.{chosen.module}")


def _named(name: str) -> Format:
    return named(FORMATS, name, f"There is no format '{name}'; results are exported as {listed(FORMATS)}.")
