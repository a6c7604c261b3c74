"""Merge runs of several folders into one: every run once, in its latest state, for any order and repetition of the sources."""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import paths
from steelyard.files.folders import NAME_ERRORS, remove_folder
from steelyard.results import identity, record, run_folders
from steelyard.results.identity import HeldRun

# What is added to a name while a run is copied or removed, and where two runs have one, must fit into the 255 bytes of a name.
LONGEST_NAME = 200


@dataclass
class Merged:
    """The result of a merge, as names of runs. `renamed`: former -> new name in the target; `left_out`: a sentence for each."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def merge(sources: Iterable[Path], target: Path) -> Merged:
    """Copy the runs of folders of runs, or single run folders, into a folder of runs.

    A run that several sources hold, or the target, is kept once, in the state with the most processes. Of different runs with
    the same name one keeps it, and the others get a part of their identities as well; which one does not depend on the order.
    Pages are not copied: `steelyard report` writes them again. Damaged runs, and those in progress, are left out.
    UserError: a source holds no run, or the target cannot be written; runs that were copied before stay.
    """
    folders = [folder for source in sources for folder in runs_in(source)]
    make(target)
    done = Merged()
    present = {run.identity: run for run in _readable(runs_in(target, may_be_empty=True), [])}
    latest = dict(present)
    for run in _readable(folders, done.left_out):
        other = latest.get(run.identity)
        try:
            later = other is None or run.is_later_than(other)
        except OSError as error:
            done.left_out.append(_not_read(run.folder, error))
            continue
        if other is None or later:
            latest[run.identity] = run
        elif other.folder.parent == target:
            done.unchanged.append(other.folder.name)
    _place(latest, present, target, done)
    done.unchanged = sorted({*done.unchanged} - {*done.added, *done.replaced, *done.renamed})
    return done


def make(target: Path) -> None:
    """Create the folder to merge into, where it is missing. UserError: it cannot be created."""
    try:
        paths.make_private(target)
    except OSError as error:
        raise _unwritable(target, error) from None


def runs_in(source: Path, may_be_empty: bool = False) -> list[Path]:
    """Return the run folders of a source: itself, or those in it. UserError: there is none."""
    if (source / record.FILE).is_file():
        return [source]
    found = [source / name for name in run_folders.names(source)]
    if not found and not may_be_empty:
        what = "holds no run" if source.is_dir() else "is no folder"
        raise UserError(f"{source} {what}. Name a folder of runs, or a run's folder, which holds {record.FILE}.")
    return found


def _readable(folders: Iterable[Path], left_out: list[str]) -> Iterator[HeldRun]:
    """Yield the runs that can be merged; for every other run a sentence is added to `left_out`."""
    for folder in folders:
        try:
            run = identity.held(folder)
            if len(os.fsencode(run.name)) > LONGEST_NAME:
                left_out.append(
                    f"Run {folder} was left out: its name is longer than {LONGEST_NAME} bytes. Rename its folder."
                )
                continue
            if run_folders.state(folder, run.known) == "running":
                left_out.append(f"Run {folder} is in progress, so it was left out. Merge it when it has ended.")
                continue
            yield run
        except UserError as error:
            left_out.append(f"Run {folder} was left out: {error}")
        except OSError as error:
            left_out.append(_not_read(folder, error))


def names_of(runs: Iterable[HeldRun], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return {identity: name} of different runs: of those with the same name, the one with the least identity keeps it.

    `taken`: names that none can have.
    """
    used, found = {*taken}, dict[str, str]()
    for run in sorted(runs, key=lambda each: each.identity):
        name = run.name if run.name not in used else f"{run.name}{run.suffix}"
        found[run.identity] = name
        used.add(name)
    return found


def _place(latest: dict[str, HeldRun], present: dict[str, HeldRun], target: Path, done: Merged) -> None:
    own = {run.folder.name for run in present.values()}
    foreign = {path.name for path in target.iterdir()} - own  # damaged runs, runs in progress, and what is no run
    names = names_of(latest.values(), foreign)
    # The longer names first, so that a name is free for the run that gets it now.
    for key, run in sorted(present.items(), key=lambda each: -len(names[each[0]])):
        if run.folder.name != names[key]:
            _rename(run.folder, target / names[key], done)
    for key, run in sorted(latest.items(), key=lambda each: names[each[0]]):
        if run is not present.get(key):
            _copied(run, target / names[key], done, replaces=key in present)


def _rename(old: Path, new: Path, done: Merged) -> None:
    try:
        with run_folders.locked(old):
            old.rename(new)
    except UserError as error:
        done.left_out.append(f"Run {old} keeps its name: {error}")
    except OSError as error:
        raise _unwritable(new, error) from None
    else:
        done.renamed[old.name] = new.name


def _copied(run: HeldRun, folder: Path, done: Merged, replaces: bool) -> None:
    """Copy a run under a temporary name first, so that a stopped merge leaves no incomplete run."""
    partial = folder.with_name(f".{folder.name}.merging")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _copy(run, partial)
        if replaces:
            with run_folders.locked(folder):
                remove_folder(folder)
        partial.rename(folder)
    except _Unread as error:
        done.left_out.append(_not_read(run.folder, error.reason))
    except UserError as error:  # the run to be replaced is in use
        done.left_out.append(f"Run {run.folder} was left out: {error}")
    except OSError as error:
        if error.errno not in NAME_ERRORS:
            raise _unwritable(folder, error) from None
        done.left_out.append(f"Run {run.folder} was left out: it cannot be written as {folder} ({error.strerror}).")
    else:
        (done.replaced if replaces else done.added).append(folder.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class _Unread(Exception):
    """A file of the source cannot be read."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _copy(run: HeldRun, folder: Path) -> None:
    folder.mkdir(paths.PRIVATE)
    made = {""}
    for path in run.files:
        parent = path.rpartition("/")[0]
        if parent not in made:
            (folder / parent).mkdir(parents=True, exist_ok=True)
            made.add(parent)
        try:
            source = (run.folder / path).open("rb")
        except OSError as error:
            raise _Unread(error) from None
        with source, (folder / path).open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _not_read(folder: Path, error: OSError) -> str:
    return f"Run {folder} was left out: {error.filename or folder} cannot be read ({error.strerror})."


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{error.filename or path} cannot be written ({error.strerror}). The runs that were merged before stay; merge again."
    )
