"""The process of one side: started in its interpreter, asked, ended with everything that it has started."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from steelyard.catalog.frameworks import WORKER
from steelyard.environments.interpreter import clean_environ, command
from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = WORKER / "port" / "__main__.py"
LOG = "output.log"
LAST_CHARACTERS = 300
VARIABLES = Path(__file__).with_name("variables_of_checkpoints.txt")


class SideError(UserError):
    """The user's own code, or the framework, failed in what was asked; the process goes on."""


class SideProcess:
    """One user's model in a process of its own. UserError of every request names the side."""

    def __init__(self, name: str, python: Path, file: Path, folder: Path, limit_s: float) -> None:
        self.name, self._folder, self._limit_s = name, folder, limit_s
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / LOG).open("wb")
        self._requests = 0
        try:
            self._process = subprocess.Popen(
                [*command(python), str(PROGRAM), str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=clean_environ(python) | _of_checkpoints(os.environ),
                cwd=file.parent,
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise UserError(
                f"The interpreter {python} of side '{name}' could not be started ({error.strerror})."
            ) from None

    def new_folder(self) -> Path:
        """Return an empty folder for the arrays of one request."""
        self._requests += 1
        folder = self._folder / str(self._requests)
        folder.mkdir()
        return folder

    def ask(self, request: str, **arguments: Any) -> dict[str, Any]:
        """Send one request and return its answer. UserError: the side failed, ended, or took longer than its limit."""
        line = json.dumps({"do": request, **arguments}) + "\n"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        text = self._answer()
        answer: dict[str, Any] = json.loads(text)
        if "error" in answer:
            raise SideError(f"Side '{self.name}': {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process and all processes of its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                _close(stream)

    def _answer(self) -> bytes:
        output = self._process.stdout
        assert output is not None
        deadline, text = time.monotonic() + self._limit_s, b""
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while not text.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise UserError(
                        f"Side '{self.name}' did not answer within {self._limit_s:.0f} s and was stopped. --silence SECONDS "
                        f"allows more.{self._said()}"
                    )
                part = os.read(output.fileno(), 1 << 16)
                if not part:
                    raise self._ended()
                text += part
        return text

    def _ended(self) -> UserError:
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return UserError(f"The process of side '{self.name}' {how} before it answered.{self._said()}")

    def _said(self) -> str:
        """Return the last line that the process printed, in a sentence of its own."""
        text = (self._folder / LOG).read_text(encoding="utf-8", errors="replace").strip()
        last = text.splitlines()[-1].strip()[-LAST_CHARACTERS:] if text else ""
        return f" It last printed: {last}" if last else ""


def _close(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _of_checkpoints(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables that say where checkpoints lie and how they are fetched, in capitals or small letters."""
    listed = {line for line in VARIABLES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    return {name: value for name, value in environ.items() if name.upper() in listed}
