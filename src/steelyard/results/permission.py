"""Which foreign code a record may have executed: only what this user started, or names again.

A run's folder may come from anybody. Its workloads are imported, its frameworks and interpreters are started when it is continued
or explained. So `run.json` has a mark over exactly these, with their hashes and the machine, which needs a key of the user's.
"""

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.files import names, user_key
from steelyard.plan.options import Options
from steelyard.plan.run_plan import RunPlan
from steelyard.statistics.sentences import listed


class Marked(Protocol):
    """The part of a run's record that decides whether its code may be executed. `allowed`: the mark that it has."""

    @property
    def plan(self) -> RunPlan: ...
    @property
    def machine(self) -> str: ...
    @property
    def allowed(self) -> str: ...


@dataclass(frozen=True)
class Foreign:
    """The foreign code that a plan executes. `workloads`: name -> folder; `interpreters`: environment -> program."""

    workloads: dict[str, str]
    frameworks: tuple[str, ...]
    interpreters: dict[str, str]

    def without(self, named: Options) -> "Foreign":
        """Return the rest, without the folders and interpreters that the user has named."""
        kinds, folders = {*map(_real, named.framework_folders)}, {*map(_real, named.workload_folders)}
        return Foreign(
            {name: each for name, each in self.workloads.items() if not folders & _named_by(each)},
            tuple(each for each in self.frameworks if _real(each) not in kinds),
            {name: each for name, each in self.interpreters.items() if named.external.get(name) != each},
        )

    @property
    def words(self) -> list[str]:
        """A description of what would be executed."""
        return [
            *(f"the workload {name} in {folder}" for name, folder in self.workloads.items()),
            *(f"the frameworks in {folder}" for folder in self.frameworks),
            *(f"the interpreter {python} of {name}" for name, python in self.interpreters.items()),
        ]

    @property
    def arguments(self) -> list[str]:
        """The arguments that name everything in it."""
        pairs = [("--workloads", folder) for folder in self.workloads.values()]
        pairs += [("--frameworks", folder) for folder in self.frameworks]
        pairs += [("--env", f"{name}={python}") for name, python in self.interpreters.items()]
        return [word for pair in dict.fromkeys(pairs) for word in pair]


def foreign(plan: RunPlan) -> Foreign:
    """Return the code that a plan executes from outside of steelyard."""
    folders = {name: each for name, each in plan.workload_folders.items() if not _is_own(each)}
    return Foreign(folders, plan.options.framework_folders, dict(plan.options.external))


def mark(plan: RunPlan, machine: str) -> str:
    """Return the mark over a plan's foreign code on a machine; empty if there is none, or no key can be stored."""
    return user_key.mark(_text(plan, machine)) if any(foreign(plan).words) else ""


def check(run: str, known: Marked, named: Options) -> None:
    """Raise UserError if a record would execute code that this user neither started nor names. None of that code is read.

    `run`: the name of the run; `named`: the folders and interpreters that the user names.
    """
    plan = known.plan
    would = foreign(plan)
    _check_named(would, plan.options, named)
    left = would.without(named)
    if not left.words:
        return
    if wrong := next((reason for name in _workloads_of(plan) if (reason := names.flaw(name, "workload"))), ""):
        raise UserError(f"The record of run {run} is damaged: {wrong}")
    if user_key.is_marked(_text(plan, known.machine), known.allowed):
        return
    raise UserError(
        f"Run {run} would execute {listed(left.words)}, and its record does not show that you started it with them; look through "
        f"them first, and to allow exactly these, add: {shlex.join(left.arguments)}"
    )


def _check_named(would: Foreign, options: Options, named: Options) -> None:
    """Reject folders and interpreters that a run does not have. `options`: those of the run."""
    folders = {*map(_real, options.workload_folders)}.union(*map(_named_by, would.workloads.values()))
    unknown = [("--workloads", each) for each in named.workload_folders if _real(each) not in folders]
    kinds = {*map(_real, would.frameworks)}
    unknown += [("--frameworks", each) for each in named.framework_folders if _real(each) not in kinds]
    unknown += [
        ("--env", f"{name}={each}") for name, each in named.external.items() if would.interpreters.get(name) != each
    ]
    if unknown:
        raise UserError(
            f"{' '.join(unknown[0])} is not in this run: name only folders and interpreters that the run was started with."
        )


def _text(plan: RunPlan, machine: str) -> str:
    """Return everything that decides what is executed, as text."""
    found = foreign(plan)
    hashes = {name: plan.workload_hashes.get(name, "") for name in found.workloads}
    parts = [
        "steelyard record 1",
        machine,
        found.workloads,
        hashes,
        found.frameworks,
        plan.framework_hashes,
        found.interpreters,
    ]
    return json.dumps(parts, sort_keys=True)


def _workloads_of(plan: RunPlan) -> Iterator[str]:
    """Yield the names of workloads, which become parts of paths in a framework's own folder."""
    yield from plan.workload_folders
    yield from (case.workload for group in plan.groups for case in group.cases)


def _is_own(folder: str) -> bool:
    """Report whether a folder is that of a workload of this installation."""
    path = Path(folder)
    return path.parent == workloads.BUILT_IN and ".." not in path.parts and (path / "spec.toml").is_file()


def _named_by(folder: str) -> set[str]:
    """Return the folders by which `--workloads` can name a workload: its own, and its parent."""
    return {_real(folder)} | ({_real(Path(folder).parent)} if Path(folder).name != ".." else set())


def _real(folder: str | Path) -> str:
    try:
        return os.path.realpath(folder)
    except ValueError:  # a name that no file can have
        return str(folder)
