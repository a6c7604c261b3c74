"""Command lines in processes that are forked from one that has imported steelyard, so that none of them has to import it.

A forked process has its own id, signals, output, exit code and state, as one of a new interpreter has. What it does not show is that a
command imports everything that it uses: `test_new_interpreters.py` starts every command in an interpreter of its own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# An interpreter reads these when it starts.
READ_AT_START = ("PYTHON", "LC_", "LANG")
LIMIT_S = 300  # much longer than any command takes, also beside other tests


class Forked:
    """Runs command lines one after the other. `environ`: the variables of the process that imports steelyard."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            env={**environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, argv: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run `steelyard *argv` with these variables in the folder of this process. TimeoutExpired: it takes longer."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            out.touch()  # on a busy machine, a process may be ended before it has opened them
            err.touch()
            request = {
                "argv": [*argv],
                "environ": {**environ},
                "folder": str(Path.cwd()),
                "out": str(out),
                "err": str(err),
            }
            assert self._server.stdin is not None
            self._server.stdin.write(f"{json.dumps(request)}\n")
            process = self._line()
            try:
                code = self._line(LIMIT_S)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                self._line()
                raise subprocess.TimeoutExpired([*argv], LIMIT_S, out.read_text(), err.read_text()) from None
            return subprocess.CompletedProcess([*argv], code, out.read_text("utf-8"), err.read_text("utf-8"))

    def _line(self, limit_s: float | None = None) -> int:
        """Return the next number that the other process writes. TimeoutError: it writes none in time."""
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], limit_s)[0]:
            raise TimeoutError
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the process that forks the others."""
        self._server.communicate()


def serve() -> dict[str, Any] | None:
    """Fork a process for every line of standard input; write its id, and its exit code when it has ended.

    Returns a request in the process that is to carry it out, and None where there are no more.
    """
    for line in sys.stdin:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # libraries may have threads, which a fork leaves behind
            process = os.fork()
        if not process:
            found: dict[str, Any] = json.loads(line)
            return found
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
    return None


def imported() -> None:
    """Import all commands and what they import later, and compile the templates of pages."""
    from steelyard.cli import commands
    from steelyard.report import page
    from steelyard.report.terms import glossary
    from steelyard.results.quantities import STEP_TIME

    for name in [f"{commands.__name__}.{each.name}" for each in pkgutil.iter_modules(commands.__path__)]:
        importlib.import_module(name)
    for name in (
        "steelyard.report.sections.histories",
        "steelyard.report.sections.side_by_side",
        "scipy.special",
        "rich.table",
    ):
        importlib.import_module(name)
    templates = page.environment(glossary(STEP_TIME, set()))
    for path in page.TEMPLATES.glob("*.jinja"):
        templates.get_template(path.name)
    page.library()
    gc.collect()
    gc.freeze()


def become(request: dict[str, Any]) -> None:
    """Give this process what a new one has: variables, folder, standard streams, arguments."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    tempfile.tempdir = None
    for number, (path, flags) in enumerate(
        [
            (os.devnull, os.O_RDONLY),
            *((request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in ("out", "err")),
        ]
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - standard input is open until the end
    from steelyard import __main__ as program

    sys.argv = [str(program.__file__), *request["argv"]]


if __name__ == "__main__":
    imported()
    asked = None
    with contextlib.suppress(KeyboardInterrupt):
        asked = serve()
    if asked:
        become(asked)
        from steelyard.cli.main import main

        sys.exit(main())
