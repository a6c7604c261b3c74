"""What is made of a finished run: the page with its tables, and the exports, against another version; a page of a million steps.

Times are CPU seconds of whole commands, because elapsed time depends on what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from scipy.stats import binom

from benchmarks import written_runs
from benchmarks.rows import Row
from steelyard.exports.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
CONTENDERS, ROUNDS = 35, 5
PAIRS, ERROR = 7, 0.05
SLOWER = 1.1
SECONDS, MEGABYTES, REPORTS = 2.0, 500.0, 3

WAITING = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


@dataclass(frozen=True)
class Version:
    """An interpreter that has steelyard; `source`: the folder of its code, empty where it is installed."""

    python: str
    source: str = ""


@dataclass(frozen=True)
class Use:
    """What a command used: CPU seconds with those of its children, and its peak of resident memory."""

    cpu_s: float
    megabytes: float


def measure(against: str = "") -> list[Row]:
    """Return the rows. `against`: a Git revision or an interpreter with another version; empty: exports against the report."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "runs").mkdir()
        run, million = (
            written_runs.many_contenders(root / "runs", CONTENDERS, ROUNDS),
            written_runs.million(root / "runs"),
        )
        if not against:
            rows = _exports(run)
        else:
            with _other(against, root) as other:
                rows = _against(run, other, against)
        return [*rows, *_million(million)]


@contextmanager
def _other(against: str, root: Path) -> Iterator[Version]:
    """Yield the other version; that of a revision is checked out until the end of the block."""
    if os.access(against, os.X_OK) and Path(against).is_file():
        yield Version(against)
        return
    tree = root / "other"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), against], check=True)
    try:
        yield Version(sys.executable, str(tree / "src"))
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _commands(run: Path) -> dict[str, list[str]]:
    """Return the commands that make something of a run, by name."""
    page = ["--output", str(run / "report.html")]
    exports = {
        f"export {name}": ["export", str(run), "--format", name, "-o", str(run.parent.parent / name)]
        for name in FORMATS
    }
    return {
        "page and tables": ["report", str(run), *page],
        "page and JSON": ["report", str(run), *page, "--json"],
        **exports,
    }


def _against(run: Path, other: Version, name: str) -> list[Row]:
    """Return the rows of every command; one that the other version lacks is compared with that version's page."""
    mine, rows = Version(sys.executable, str(ROOT / "src")), []
    commands = _commands(run)
    first, page = next(iter(commands.items()))
    for what, arguments in commands.items():
        if not _has(mine, what, arguments):
            continue
        if _has(other, what, arguments):
            pairs = _pairs((mine, arguments), (other, arguments))
            rows += _rows(f"{what} of {CONTENDERS} contenders / {name}", pairs, SLOWER)
        else:
            pairs = _pairs((mine, arguments), (other, page))
            rows += _rows(f"{what} of {CONTENDERS} contenders / {first} of {name}", pairs, inf)
    return rows


def _exports(run: Path) -> list[Row]:
    """Return the rows of every command relative to the page with its tables."""
    mine, rows = Version(sys.executable, str(ROOT / "src")), []
    commands = _commands(run)
    first = commands.pop(next(iter(commands)))
    for what, arguments in commands.items():
        if _has(mine, what, arguments):
            pairs = _pairs((mine, arguments), (mine, first))
            rows += _rows(f"{what} / page and tables of {CONTENDERS} contenders", pairs, inf)
    return rows


def _has(version: Version, what: str, arguments: list[str]) -> bool:
    """Run a command once, so that its code is compiled; one that fails is named on standard error."""
    done = subprocess.run(_line(version, arguments), env=_environ(version), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        print(f"{what} fails with {version.source or version.python}: {reason}", file=sys.stderr)
    return not done.returncode


def _pairs(a: tuple[Version, list[str]], b: tuple[Version, list[str]]) -> list[tuple[Use, Use]]:
    """Run two commands in turns, in alternating order."""
    pairs = []
    for number in range(PAIRS):
        used = {place: _use(*(a, b)[place]) for place in ((0, 1) if number % 2 else (1, 0))}
        pairs.append((used[0], used[1]))
    return pairs


def _rows(name: str, pairs: list[tuple[Use, Use]], limit: float) -> list[Row]:
    """Return the ratios of CPU time and of memory."""
    return [
        _row(f"{name}, CPU time", [(a.cpu_s, b.cpu_s) for a, b in pairs], limit, "s"),
        _row(f"{name}, memory", [(a.megabytes, b.megabytes) for a, b in pairs], limit, "MB"),
    ]


def _row(name: str, pairs: list[tuple[float, float]], limit: float, unit: str) -> Row:
    ratios = sorted(a / b for a, b in pairs)
    # The interval of a median between two of the sorted values, by the binomial distribution of how many lie below it.
    place = max(1, int(binom.ppf(ERROR / 2, len(ratios), 0.5)))
    ours, theirs = (median(values) for values in zip(*pairs, strict=True))
    interval = f"[{ratios[place - 1]:.3f}, {ratios[-place]:.3f}]"
    how = f"{interval}, {ours:.3g} {unit} / {theirs:.3g} {unit}, {len(pairs)} pairs in turns"
    return Row(name, median(ratios), limit, "at most", how)


def _million(run: Path) -> list[Row]:
    """Return the time and the memory of the report of a million steps."""
    arguments = next(iter(_commands(run).values()))
    mine = Version(sys.executable, str(ROOT / "src"))
    used = [_use(mine, arguments) for _ in range(REPORTS + 1)][1:]
    seconds, megabytes = min(each.cpu_s for each in used), min(each.megabytes for each in used)
    return [
        Row("report of 10^6 samples, s", seconds, SECONDS, "at most", f"CPU time, page and tables, best of {REPORTS}"),
        Row("report of 10^6 samples, peak MB", megabytes, MEGABYTES, "at most", "resident, interpreter included"),
    ]


def _use(version: Version, arguments: list[str]) -> Use:
    """Run a command in a new process.

    A small process starts it, because Linux counts the memory of the parent in the peak of a child.
    """
    line = [sys.executable, "-c", WAITING, *_line(version, arguments)]
    done = subprocess.run(line, env=_environ(version), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(_line(version, arguments))} failed.")
    cpu_s, kibibytes = map(float, done.stdout.split())
    return Use(cpu_s, kibibytes * 1024 / 1e6)


def _line(version: Version, arguments: list[str]) -> list[str]:
    return [version.python, "-m", "steelyard", *arguments]


def _environ(version: Version) -> dict[str, str]:
    """Return the variables of a command: no code but that of its version, which may keep compiled code."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    return kept | ({"PYTHONPATH": version.source} if version.source else {})
