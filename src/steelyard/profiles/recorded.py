"""Read the folder of a profiled process: where the time of its step went. Nothing else is read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.ranges import PROFILES
from steelyard.profiles import classes, hlo, onednn
from steelyard.profiles.breakdown import Breakdown, Profile, breakdown
from steelyard.results import trials
from steelyard.results.events import Block
from steelyard.results.trials import Trial
from steelyard_worker import protocol, records, tensors
from steelyard_worker.job_kinds import KINDS, PROFILE

FOLDER = KINDS[PROFILE].folder
RULES = "rules.json"
"""The framework's table of operations as it was when the profile was taken."""
PROGRAM = "program.txt"
TRACED = "operations"


@dataclass(frozen=True)
class Explained:
    """One profiled process. `kernels`: share of oneDNN's time by primitive and implementation; empty without its log.

    `files`: the traces, relative to the folder of the run. `unrecorded`: class -> a sentence on operations that the framework's
    profiler does not record, so that their time is in this class.
    """

    trial: Trial
    breakdown: Breakdown
    kernels: Mapping[tuple[str, str], float]
    files: tuple[str, ...]
    unrecorded: Mapping[str, str] = field(default_factory=dict)


def folder_of(run: Path, file_name: str, number: int = 1) -> Path:
    """Return the folder of a variant's profile; those of several processes are numbered from 1."""
    return run / FOLDER / f"{number}-{file_name}"


def numbers(run: Path, file_name: str) -> list[int]:
    """Return the numbers of a variant's profiles: `explain --profiles` may have added some to those that the run planned."""
    return [each for each in range(1, int(PROFILES.most) + 1) if folder_of(run, file_name, each).exists()]


def write_rules(folder: Path, rules: Mapping[str, Any]) -> None:
    """Keep the framework's table of operations beside its profile."""
    atomic.write_text(folder / RULES, json.dumps(rules, indent=1))


def read(run: Path, file_name: str, number: int = 1) -> Explained | None:
    """Return a profile of a variant; None where none was taken. UserError: it failed, was interrupted, or is damaged."""
    folder = folder_of(run, file_name, number)
    if not (folder / trials.JOB).exists():
        return None
    trial = trials.read(folder)
    if trial.error:
        raise UserError(f"{trial.error[1]} ({trial.error[0]}; see {folder / protocol.LOG})")
    if not trial.done or not trial.profiled or not (folder / RULES).exists():
        raise UserError(f"Its profiling was interrupted. Take it again with: steelyard explain --run {run.name}")
    try:
        return _explained(run, folder, trial, trial.profiled.files)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise UserError(f"The profile in {folder} is damaged ({error}). Delete that folder to take it again.") from None


def _explained(run: Path, folder: Path, trial: Trial, files: tuple[str, ...]) -> Explained:
    recorded, log = folder / protocol.PROFILE / TRACED, folder / protocol.LOG
    if not tensors.is_unchanged(recorded):
        message = f"{recorded} does not hold what was written"
        raise ValueError(message)
    arrays, names = tensors.read(recorded), tensors.read_meta(recorded)["names"]
    (block,) = [each for each in trial.blocks if each.phase == "profiled"]
    plain = [each for each in trial.blocks if each.phase == "plain"]
    profile = Profile(
        names,
        arrays["thread"],
        arrays["name"],
        arrays["start_ns"],
        arrays["duration_ns"],
        arrays["waits_ns"],
        block.steps,
        block.elapsed_ns,
        _per_step(plain, lambda each: each.elapsed_ns),
        (block.cpu_ns / block.steps, _per_step(plain, lambda each: each.cpu_ns)),
    )
    found = list(onednn.kernels(log.read_text(encoding="utf-8", errors="replace").splitlines()))
    return Explained(
        trial,
        breakdown(profile, _class_of(folder, files), onednn.to_data(found)),
        onednn.shares(found),
        tuple(str((folder / name).relative_to(run)) for name in files if (folder / name).is_file()),
        classes.unrecorded(records.parse(records.read_text(folder / RULES)).get("unrecorded", {})),
    )


def _per_step(blocks: list[Block], value: Callable[[Block], int]) -> float:
    return sum(map(value, blocks)) / sum(each.steps for each in blocks)


def _class_of(folder: Path, files: tuple[str, ...]) -> Callable[[str], str]:
    """Return the function from an operation's name to its class."""
    rules = records.parse(records.read_text(folder / RULES))
    operations = classes.table(rules["operations"])
    if "stack" not in rules:
        return operations.class_of
    program = hlo.Program("", {}, {})
    if any(name.endswith(PROGRAM) for name in files):  # without it, every operation was a program of its own
        program = hlo.parse((folder / protocol.PROFILE / PROGRAM).read_text(encoding="utf-8"))
    known = hlo.classes(program, operations, classes.table(rules["stack"]))
    kernels = {hlo.kernel_of(name): kind for name, kind in known.items()}

    def of_instruction(name: str) -> str:
        """Return the class of a name, which is module/instruction.number or module/kernel where XLA compiled it.

        The program is that of the step. Others are those of single operations, named after them (`jit_add`).
        """
        module, _, instruction = name.rpartition("/")
        if module == program.module and (instruction in known or instruction in kernels):
            return known.get(instruction) or kernels.get(instruction, "")
        of_module = operations.class_of(module.removeprefix("jit_")) if module.startswith("jit_") else ""
        return of_module or operations.class_of(instruction.rpartition(".")[0] or instruction)

    return of_instruction
