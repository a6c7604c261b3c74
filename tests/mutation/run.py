"""Changes the source code in small ways, one at a time, and lists the changes that no test notices (`make mutants`).

mutmut makes the changes ("mutants") and selects the tests that call the changed function. This file chooses which mutants
are run, and compares those that no test noticed with the list in `survivors.toml`.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst
import tomllib
from mutmut import __main__ as mutmut
from mutmut.mutation import file_mutation, mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths, walk_mutatable_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOMS = ("certificates", "measure", "results", "statistics")
REPOSITORY = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("survivors.toml")
SKIPPED = 34  # mutmut's exit code of a mutant that is not run
# Killed by a failed test, by an error of pytest, or by the time limit.
NOTICED = ("killed", "timeout", "segfault")


@dataclass(frozen=True)
class Mutant:
    """One change. `function` is its qualified name; `before` and `after` are the changed lines, without line breaks."""

    name: str
    room: str
    status: str
    function: str = ""
    before: str = ""
    after: str = ""

    @property
    def change(self) -> str:
        """The tokens that differ, such as `1 -> 2`."""
        old, new = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (self.before, self.after))
        start = _common(old, new)
        end = _common(old[start:][::-1], new[start:][::-1])
        removed, added = ("".join(tokens[start : len(tokens) - end]) for tokens in (old, new))
        return f"{removed.strip(' ,')} -> {added.strip(' ,')}".strip()


def _common(left: list[str], right: list[str]) -> int:
    """Return how many elements at the start of two lists are equal."""
    return next(
        (place for place, pair in enumerate(zip(left, right, strict=False)) if len(set(pair)) > 1),
        min(len(left), len(right)),
    )


def main() -> int:
    """Run mutmut on some rooms; returns 1 if a mutant survived that `survivors.toml` does not list."""
    asked = _arguments()
    os.chdir(REPOSITORY)
    if not asked.resume:
        shutil.rmtree("mutants", ignore_errors=True)
    if not asked.report:
        _leave_out_messages()
        _run_fast_tests_first()
        _generate(asked.processes)
        _choose(asked.rooms, asked.seed, asked.again)
        mutmut.cli(["run", "--max-children", str(asked.processes)], standalone_mode=False)
    return _report(list(_mutants(set(asked.rooms))))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "rooms",
        nargs="*",
        default=dict.fromkeys(ROOMS),
        metavar="ROOM[:N]",
        action=_Rooms,
        help=f"one of {', '.join(ROOMS)}, with N: at most N random mutants of it; default: all of all rooms",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of random mutants (default 0)")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="tests that run at once (default 1)")
    parser.add_argument("--resume", action="store_true", help="keep the results in mutants/ and run what is missing")
    parser.add_argument("--again", action="store_true", help="with --resume: run those that survived again")
    parser.add_argument("--report", action="store_true", help="with --resume: run nothing, only print the results")
    return parser.parse_args()


class _Rooms(argparse.Action):
    """Reads rooms as {room: most mutants}; None: all."""

    def __call__(
        self, parser: argparse.ArgumentParser, found: argparse.Namespace, words: Any, option: Any = None
    ) -> None:
        chosen = {room: int(number) if number else None for room, _, number in (word.partition(":") for word in words)}
        if unknown := ", ".join(sorted(chosen.keys() - set(ROOMS))):
            parser.error(f"There is no room {unknown}. Choose from {', '.join(ROOMS)}.")
        found.rooms = chosen or dict.fromkeys(ROOMS)


def _leave_out_messages() -> None:
    """Change only words that the program reads: a string with a space is a message, and its wording is no behaviour."""

    def word(node: libcst.BaseString) -> Iterator[libcst.BaseString]:
        if isinstance(node, libcst.SimpleString) and " " not in str(node.evaluated_value):
            yield from list(mutators.operator_string(node))[:1]

    mutators.mutation_operators[:] = [
        (kind, word if operator is mutators.operator_string else operator)
        for kind, operator in mutators.mutation_operators
    ]
    file_mutation.NEVER_MUTATE_FUNCTION_CALLS.add("cast")  # a type, without effect when the program runs


def _run_fast_tests_first() -> None:
    """Sort the tests of a mutant by the time they took, because the first that fails ends the run."""
    arguments: Callable[..., list[str]] = PytestRunner._pytest_args_regular_run

    def sorted_arguments(self: PytestRunner, tests: Any) -> list[str]:
        took = state().duration_by_test
        return arguments(self, sorted(tests, key=lambda name: (took.get(name, 0.0), name)))

    PytestRunner._pytest_args_regular_run = sorted_arguments


def _generate(processes: int) -> None:
    """Write the changed source code into mutants/, as `mutmut run` does."""
    with mutmut.CatchOutput(spinner_title="Generating mutants"):
        Path("mutants").mkdir(exist_ok=True)
        copy_src_dir()
        copy_also_copy_files()
        setup_source_paths()
        mutmut.create_mutants(processes)


def _choose(rooms: dict[str, int | None], seed: int, again: bool) -> None:
    """Mark the mutants that are not to be run as skipped; mutmut then runs those that have no result."""
    files = list(_files())
    wanted: set[str] = set()
    for room, most in rooms.items():
        names = sorted(name for path, data in files if path.parts[2] == room for name in data.exit_code_by_key)
        few = most is not None and most < len(names)
        wanted |= set(random.Random(seed).sample(names, most) if few else names)
    for _, data in files:
        for name, code in data.exit_code_by_key.items():
            if name not in wanted:
                data.exit_code_by_key[name] = SKIPPED if code is None else code
            elif code == SKIPPED or (again and status_by_exit_code[code] not in NOTICED):
                data.exit_code_by_key[name] = None
        data.save()


def _files() -> Iterator[tuple[Path, SourceFileMutationData]]:
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        yield path, data


def _mutants(rooms: set[str]) -> Iterator[Mutant]:
    for path, data in _files():
        if path.parts[2] in rooms:
            for name, code in data.exit_code_by_key.items():
                yield _mutant(name, path, status_by_exit_code[code])


def _mutant(name: str, path: Path, status: str) -> Mutant:
    room = path.parts[2]
    if status not in ("survived", "no tests", "suspicious"):
        return Mutant(name, room, status)
    lines = get_diff_for_mutant(name, path=path).splitlines()[3:]
    before, after = (" ".join(line[1:].strip() for line in lines if line[:1] == sign) for sign in "-+")
    function = re.sub(r"__mutmut_\d+$", "", name.removeprefix("steelyard.")).replace("xǁ", "").replace("ǁ", ".")
    return Mutant(name, room, status, re.sub(r"\.x_", ".", function), before, after)


def _report(mutants: list[Mutant]) -> int:
    """Print the score of each room and the survivors that are not listed; returns 1 if there is one."""
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    survivors = [each for each in mutants if each.function]
    listed = {each.name for each in survivors if _is_listed(each, known)}
    for room in sorted({each.room for each in mutants}):
        count = Counter(each.status for each in mutants if each.room == room)
        noticed, total = sum(count[each] for each in NOTICED), sum(count.values())
        run = total - count["skipped"] - count["not checked"]
        harmless = sum(each.room == room and each.name in listed for each in survivors)
        shares = (
            f"{noticed / run:.1%}; without those in the list {noticed / max(1, run - harmless):.1%}" if run else "-"
        )
        print(
            f"{room}: {total} mutants, {run} run, {count['killed']} killed, {count['timeout']} timed out, "
            f"{count['survived']} survived, {count['no tests']} without a test, {harmless} in the list. Noticed: {shares}."
        )
    unlisted = [each for each in survivors if each.name not in listed]
    for each in unlisted:
        print(
            f"\n{each.name} ({each.status})\n  function = {each.function!r}\n- {each.before}\n+ {each.after}\n  {each.change}"
        )
    return 1 if unlisted else 0


def _is_listed(mutant: Mutant, known: dict[str, Any]) -> bool:
    general = any(
        fnmatch.fnmatchcase(mutant.function, each.get("function", "*")) and mutant.change in each["changes"]
        for each in known.get("changes", [])
    )
    return general or any(
        mutant.function == each["function"] and [mutant.before, mutant.after] in each["lines"]
        for each in known.get("lines", [])
    )


if __name__ == "__main__":
    sys.exit(main())
