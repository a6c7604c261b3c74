"""A file of trained weights that the user names: whose file it is, and a digest of its content. No tensor of it is read here."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.catalog.frameworks import Framework

# Files of arrays under the names of network.py, which need no framework.
ARRAYS = (".npz", ".safetensors")
AS_ARRAYS = "Write the arrays under the names of network.py: numpy.savez(FILE, **{name: array})"
DIGEST_LENGTH = 16
INDEX = ".index"  # of a checkpoint of TensorFlow, whose values lie in files beside it


@dataclass(frozen=True)
class GivenWeights:
    """A file of weights. `framework`: whose checkpoint it is; empty: arrays under canonical names."""

    path: Path
    framework: str = ""

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return self.path.name

    @property
    def text(self) -> str:
        """What names it in a command, and in a record."""
        return f"{self.framework}:{self.path}" if self.framework else str(self.path)

    @property
    def files(self) -> list[Path]:
        """The file, and those beside it that belong to the same checkpoint."""
        if self.path.suffix != INDEX:
            return [self.path]
        values = f"{self.name.removesuffix(INDEX)}.data-"
        return [self.path, *sorted(each for each in self.path.parent.iterdir() if each.name.startswith(values))]


def parsed(text: str) -> GivenWeights:
    """Return what `--weights` names: `FILE`, whose ending tells its framework, or `FRAMEWORK:FILE`. UserError: none reads it."""
    match = re.fullmatch(r"([a-z][a-z0-9_-]*):(.+)", text, re.DOTALL)
    if match:
        path = Path(match[2])
        return GivenWeights(path, _named_reader(match[1], path))
    path = Path(text)
    return GivenWeights(path, "" if _ending(path, ARRAYS) else _reader(path))


def checked(text: str) -> GivenWeights:
    """Return what `--weights` names, as `parsed` does. UserError: nobody reads it, or there is no such file."""
    found = parsed(text)
    if found.path.is_dir():
        raise UserError(f"--weights {found.path} is a folder; name the file of weights in it.")
    if not found.path.is_file():
        raise UserError(f"--weights {found.path}: there is no such file.")
    if found.path.suffix == INDEX and len(found.files) == 1:
        values = f"{found.name.removesuffix(INDEX)}.data-00000-of-00001"
        raise UserError(f"--weights {found.path}: the values of this checkpoint are missing; put {values} beside it.")
    return found


def digest(given: GivenWeights) -> str:
    """Return the beginning of the SHA-256 of the file; of several files, of their hashes. UserError: one cannot be read."""
    try:
        hashes = [_sha256(path) for path in given.files]
    except OSError as error:
        raise UserError(f"--weights {given.path} cannot be read ({error.strerror}); check its permissions.") from None
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    return whole[:DIGEST_LENGTH]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _named_reader(name: str, path: Path) -> str:
    """Return the framework that the user names for a file. UserError: there is none, or it reads no such file."""
    known = frameworks.framework(name)
    if _ending(path, ARRAYS):
        raise UserError(
            f"--weights {name}:{path.name}: this is read without a framework, by the names of network.py; name the file alone."
        )
    _check_is_read(known, path)
    if not known.checkpoints:
        reason = next(iter(known.unread_checkpoints.values()), "its adapter has no checkpoint()")
        raise UserError(
            f"--weights {name}:{path.name}: {known.title} reads no file of weights ({reason}). {AS_ARRAYS}."
        )
    return name


def _reader(path: Path) -> str:
    """Return the framework that the ending of a file belongs to. UserError: there is none, or it reads no such file."""
    known = frameworks.all_frameworks()
    readers = [name for name, each in known.items() if _ending(path, each.checkpoints)]
    if len(readers) == 1:
        return readers[0]
    if readers:
        raise UserError(f"--weights {path}: this may be a file of {' or '.join(readers)}; write FRAMEWORK:FILE.")
    for each in known.values():
        _check_is_read(each, path)
    endings = [*ARRAYS, *(ending for each in frameworks.listed().values() for ending in each.checkpoints)]
    raise UserError(
        f"--weights {path}: the ending does not say what this is (known: {', '.join(endings)}). Name the framework that wrote "
        "it: --weights FRAMEWORK:FILE."
    )


def _check_is_read(known: Framework, path: Path) -> None:
    if ending := _ending(path, known.unread_checkpoints):
        reason = known.unread_checkpoints[ending]
        raise UserError(f"--weights {path}: a {ending} of {known.title} is not read: {reason}. {AS_ARRAYS}.")


def _ending(path: Path, endings: Iterable[str]) -> str:
    return next((each for each in endings if path.name.lower().endswith(each)), "")
