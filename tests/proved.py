"""Tests of real frameworks whose outcome was recorded are not repeated, except a sample that changes with the commit.

`--proved use` leaves out what the record holds with the same key (`decides.py`) for the same kind of machine, unless it is in the sample;
`--proved add` runs only what is missing from the repository's record, and adds it; `--proved anew` runs everything and writes the
record anew. Without the option, everything that is asked for runs. Tests that declare nothing always run.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import platform
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import decides
import pytest
from filelock import FileLock
from proved_record import Entry, Record

from steelyard.certificates.method import VERSION
from steelyard.files.paths import cache_folder
from steelyard.host import processor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RECORD = "tests/conformance/certified.toml"
LOCAL = "certified.toml"
"""In the user's cache: what passed on this machine, so that the next run rests on it; and what failed, so that none does."""
PARTS = 10
"""A sample has the tests of one part; ten commits in a row have every part."""
UNRECORDED = "not recorded"
"""Name of a property: a test that passed for a reason that its key does not have must not be recorded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--proved",
        choices=("use", "add", "anew"),
        default="",
        help="leave out tests whose outcome is recorded (use), run and record the others (add), or record all anew (anew)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "decided(by=): a function from parameters to decides.Sources, on which the outcome rests"
    )
    chosen = config.getoption("--proved")
    if not chosen:
        return
    if config.getoption("numprocesses", None):
        raise pytest.UsageError(
            "--proved works in one process of pytest, so --numprocesses cannot be combined with it."
        )
    config.pluginmanager.register(Proved(config.rootpath, cache_folder() / LOCAL, chosen), "steelyard-proved")


class Proved:
    """Chooses which tests run, follows their outcomes and writes the records. `root`: the repository; `local`: the local record."""

    def __init__(self, root: Path, local: Path, chosen: str) -> None:
        self._root, self._local, self._chosen = root, local, chosen
        self._committed = root / RECORD
        self._machine = machine()
        self._keys: dict[str, str] = {}
        self._sampled = set[str]()
        self._resting: dict[str, Entry] = {}
        self._outcomes: dict[str, bool] = {}
        self._unrecorded: dict[str, str] = {}
        self._collected = set[str]()
        self._always = 0
        self._notes: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
        """Leave out what is proved, after the options -m and -k have chosen."""
        self._collected = {item.nodeid for item in items}
        yield
        declared = [(item, found) for item in items if (found := decides.sources_of(item))]
        decides.forget()
        self._always = len(items) - len(declared)
        # Slow tests run in `make test-all` only, where nothing rests on the record.
        self._keys = {
            item.nodeid: decides.key_of(item, each, self._root)
            for item, each in declared
            if not item.get_closest_marker("slow")
        }
        if self._chosen == "anew":
            return
        if self._chosen == "use":
            places = {
                item.nodeid: (item.path.relative_to(self._root).as_posix(), each.sample) for item, each in declared
            }
            wanted = part_of_commit(self._root)
            parts = parts_of(places.values())
            self._sampled = {name for name, place in places.items() if parts[place] == wanted}
        self._resting = {name: entry for name, entry in self._proved().items() if name not in self._sampled}
        left_out = [item for item in items if item.nodeid in self._resting]
        items[:] = [item for item in items if item.nodeid not in self._resting]
        if left_out:
            config.hook.pytest_deselected(items=left_out)

    def _proved(self) -> dict[str, Entry]:
        """Return the entry on which each test may rest: of the same key and kind of machine, and not failed since."""
        known, own = self._read(self._committed), self._read(self._local)
        found = dict[str, Entry]()
        for name, key in self._keys.items():
            entries = [
                each for record in (own, known) if (each := record.find(self._machine, name)) and each.key == key
            ]
            if entries and not any(each.failed for each in entries):
                found[name] = entries[0]
        return found

    def _read(self, path: Path) -> Record:
        found, problem = Record.read(path)
        if problem and problem not in self._notes:
            self._notes.append(problem)
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether a test passed in all its phases; a skipped test has shown nothing."""
        name = report.nodeid
        if name not in self._keys:
            return
        for kind, value in report.user_properties:
            if kind == UNRECORDED:
                self._unrecorded[name] = str(value)
        if report.failed:
            self._outcomes[name] = False
        elif report.when == "call" and report.passed:
            self._outcomes.setdefault(name, True)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what was shown. What was not run, such as after an interruption, is not shown."""
        if session.config.option.collectonly:
            return
        today = dt.datetime.now(dt.UTC).date().isoformat()
        shown = {
            name: Entry(self._keys[name], today, VERSION, failed=not passed)
            for name, passed in self._outcomes.items()
            if name not in self._unrecorded
        }
        passed = {name: entry for name, entry in shown.items() if not entry.failed}
        self._local.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._local.with_name(f"{LOCAL}.lock")):
            self._read(self._local).changed(self._machine, shown).write(self._local)
        if self._chosen == "use":
            return
        known = self._read(self._committed)
        gone = {name for name in known.names(self._machine) if self._is_gone(name)}
        failed = self._outcomes.keys() - passed.keys()
        kept = passed if self._chosen == "anew" else self._resting | passed
        known.changed(self._machine, kept, without=gone | failed).write(self._committed)

    def _is_gone(self, name: str) -> bool:
        """Report whether a recorded test is none any more: its file was collected without it, or there is none."""
        file = name.partition("::")[0]
        read = {each.partition("::")[0] for each in self._collected}
        return (file in read and name not in self._collected) or not (self._root / file).is_file()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many tests were run, and how many rest on the record."""
        terminalreporter.section("what rests on the record")
        for each in self._notes:
            terminalreporter.line(each)
        for name, reason in self._unrecorded.items():
            terminalreporter.line(f"{name} is not recorded: {reason}")
        terminalreporter.line(self.sentence())

    def sentence(self) -> str:
        """Return how many tests ran and why, and how many rest on the record."""
        run = self._keys.keys() - self._resting.keys()
        counts = Counter("sample" if name in self._sampled else "missing" for name in run)
        resting = f"{len(self._resting)} rest on the record"
        if self._chosen == "anew":
            return f"Tests of real frameworks: all were run anew, and none rests on the record; {self._always} declare nothing."
        sample = f"{counts['sample']} are this commit's sample, " if self._chosen == "use" else ""
        return (
            f"Tests of real frameworks on {self._machine}: {len(run) + self._always} were run ({sample}"
            f"{counts['missing']} are not in the record, {self._always} always run), and {resting}."
        )


def parts_of(places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the part of the sample, from 0, of each file's tests that are drawn together; all parts are about as large."""
    return {place: number % PARTS for number, place in enumerate(sorted(set(places)))}


def part_of_commit(root: Path) -> int:
    """Return which part is the sample: the number of commits so far, or where there is no history, a hash of the sources."""
    return (_commits(root) or _of_sources(root)) % PARTS


def _commits(root: Path) -> int | None:
    """Return how many commits led here; None without git, or where earlier commits are left out."""
    asked = (["--show-toplevel"], ["--is-shallow-repository"])
    try:
        top, shallow = (_git(root, "rev-parse", *each) for each in asked)
        if Path(top).resolve() != root.resolve() or shallow != "false":
            return None
        return int(_git(root, "rev-list", "--count", "HEAD"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def _of_sources(root: Path) -> int:
    files = [path for folder in ("src", "tests") for path in sorted((root / folder).rglob("*.py"))]
    found = hashlib.sha256()
    for path in files:
        found.update(path.read_bytes())
    return int(found.hexdigest(), 16)


def machine() -> str:
    """Return the kind of this machine: what decides which kernels the libraries pick, and how they split their sums."""
    _, flags = processor.model_and_flags(Path("/"))
    instructions = " ".join(flag for flag in flags if flag != "hypervisor")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    gpu = "GPU" if Path("/dev/nvidiactl").exists() else ""
    kinds = (f"{platform.system()} {platform.machine()}", _vendor(), instructions, f"{cores} cores", gpu)
    return ", ".join(filter(None, kinds))


def _vendor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith(("vendor_id", "CPU implementer"))), ""
    )
