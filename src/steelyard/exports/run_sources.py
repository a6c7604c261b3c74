"""The runs in folders that may be strangers': found without following a link, each of them once."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from steelyard.errors import UserError
from steelyard.exports.bundle import SUMS
from steelyard.files import within
from steelyard.results import identity, record, run_folders, trials
from steelyard.results.merging import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.results.identity import HeldRun

LEVELS = 5
"""So many folders deep is looked for runs."""
PARTS = (record.CERTIFICATES, record.ROUNDS, trials.FOLDER, SUMS)
"""What a folder has that is a run, or was one."""
NUMBERS = ".i64"
LINK = "a link, which is not followed: put what it leads to in its place"


class Measured(NamedTuple):
    """A run with the hashes of what its processes measured, which copies of it have, too."""

    run: HeldRun
    hashes: frozenset[str]


@dataclass
class Sources:
    """The runs of some folders, sorted by path. `copies`, `left_out`: a sentence for each folder that is not among them."""

    runs: list[HeldRun] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def of_folders(folders: Iterable[Path]) -> Sources:
    """Return the runs at and below some folders. Of a run and its copies, that with the most measured processes is taken.

    UserError: a folder is none, or there is neither a run in them nor what was one.
    """
    done, asked = Sources(), [folder.expanduser().absolute() for folder in folders]
    held: list[Measured] = []
    for folder in asked:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder. Name a folder with runs or bundles in it.")
        for path in _below(folder, LEVELS, done.left_out):
            _read(path, held, done.left_out)
    done.runs = _each_once(held, done.copies)
    if not done.runs and not done.left_out:
        names = ", ".join(map(str, asked))
        raise UserError(f"There is no run in {names}. Name a folder with runs or bundles, which hold {record.FILE}.")
    return done


def _below(folder: Path, levels: int, left_out: list[str]) -> Iterator[Path]:
    """Yield the folders of runs at and below a folder, which may have links that nobody follows."""
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as error:
        left_out.append(f"{folder} was left out: it cannot be read ({error.strerror}).")
        return
    names = {each.name for each in entries}
    if record.FILE in names:
        yield folder
        return
    if names & {*PARTS}:
        left_out.append(f"{folder} was left out: it has no {record.FILE}, without which it is no run.")
        return
    for each in entries:
        if each.name.startswith("."):
            continue
        if each.is_symlink() and each.is_dir():
            left_out.append(f"{each.path} was left out: it is {LINK}.")
        elif levels and each.is_dir(follow_symlinks=False):
            yield from _below(Path(each.path), levels - 1, left_out)


def _read(folder: Path, held: list[Measured], left_out: list[str]) -> None:
    try:
        _check(folder)
        run = identity.held(folder)
        hashes = frozenset(_hash(folder / path) for path in run.files if path.endswith(NUMBERS))
        held.append(Measured(run, hashes))
    except UserError as error:
        left_out.append(f"{folder} was left out: {error}")
    except OSError as error:
        left_out.append(f"{folder} was left out: {error.filename or folder} cannot be read ({error.strerror}).")


def _check(folder: Path) -> None:
    """Raise UserError where the name of a run's folder cannot stand on a page, or there is a link in the folder."""
    try:
        long = len(folder.name.encode()) > LONGEST_NAME
    except UnicodeEncodeError:
        raise UserError("its name is not UTF-8. Rename it.") from None
    if long:
        raise UserError(f"its name is longer than {LONGEST_NAME} bytes. Rename it.")
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in sorted((*folders, *files))):
            if path.is_symlink():
                raise UserError(f"{path} is {LINK}.")
        if Path(parent) == folder and run_folders.CERTIFICATES in folders:
            folders.remove(run_folders.CERTIFICATES)  # frameworks may leave links in it, and nothing of it is read
    within.check_file(folder / record.FILE)


def _each_once(held: list[Measured], copies: list[str]) -> list[HeldRun]:
    """Return the runs without copies of others: the same identity and machine, and no measured process that the other lacks."""
    kept: list[Measured] = []
    for each in sorted(held, key=lambda one: (-len(one.hashes), str(one.run.folder))):
        if other := next((one for one in kept if _is_copy(each, one)), None):
            sentence = (
                f"{each.run.folder} is a copy of {other.run.folder}, or an earlier state of it, so it is shown once."
            )
            copies.append(sentence)
        else:
            kept.append(each)
    return sorted((each.run for each in kept), key=lambda run: str(run.folder))


def _is_copy(each: Measured, of: Measured) -> bool:
    same = (each.run.identity, each.run.known.machine) == (of.run.identity, of.run.known.machine)
    return same and bool(each.hashes) and each.hashes <= of.hashes


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
