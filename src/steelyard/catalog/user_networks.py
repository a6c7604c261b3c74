"""Networks and data of the user's own: their code runs in a process beside this one, and what comes back is data.

A network.py or data.py may end its process, never return, or print. None of that may reach this process, which holds the run.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.catalog import describing_process, network_data
from steelyard.catalog.describing_process import Failure, Request
from steelyard.errors import UserError, notice
from steelyard.files.bounded_log import BoundedLog
from steelyard.host import left_behind
from steelyard_worker import records
from steelyard_worker.network import Network

if TYPE_CHECKING:
    import numpy as np

OUTPUT = "output.log"
# The same modules are found as here, wherever this program was started.
CODE = "import sys; sys.path[:] = {0!r}; from pathlib import Path; from {1} import main; main(Path({2!r}))"
POLL_S = 0.5
# After this time, a line says what the command waits for.
PATIENCE_S = 10.0
# A description of more bytes is no network of tensors that somebody has named.
LONGEST_BYTES = 64 * 2**20
MOST_SHOWN_LINES = 20
MOST_SHOWN = 2000

_limit_s = [600.0]
_shown: set[str] = set()


def allow(seconds: float) -> None:
    """Set how long a process that runs the user's code may take in this command: what `--silence` says of any process."""
    _limit_s[:] = [seconds]


def describe(folder: Path, sizes: Sequence[dict[str, Any]]) -> list[Network | Failure]:
    """Return the networks of a workload folder at all these sizes, or why there is none, from one process.

    Networks after the sizes at which the process ended are left out.
    """
    with _asked(folder, Request(str(folder), tuple(sizes))) as (place, ending):
        found: list[Network | Failure] = []
        for number, each in enumerate(sizes):
            answer = _network(place, number, folder, each)
            found.append(answer or Failure(ending))
            if answer is None:
                break
    return found


@dataclass(frozen=True)
class Drawing:
    """A function of a user's network that draws a batch, called like it. `name`: see `network_data.DRAWING`."""

    folder: Path
    sizes: dict[str, Any]
    name: str

    def __call__(self, generator: "np.random.Generator", count: int) -> "dict[str, np.ndarray[Any, Any]]":
        """Return {input: array (count, ...)}; `generator` is not moved on. UserError: the function fails."""
        from steelyard_worker import tensors

        state = dict(generator.bit_generator.state)
        with _asked(self.folder, Request(str(self.folder), (self.sizes,), self.name, state, count)) as (place, ending):
            try:
                return {name: each.copy() for name, each in tensors.read(place / describing_process.DRAWN).items()}
            except (OSError, ValueError):
                reason = (_failure(place, 0) or Failure(ending)).reason
        path = self.folder / describing_process.MODULE
        raise UserError(f"{path} cannot draw a batch of {count} at these sizes: {reason}.")


def make_arrays(folder: Path, sizes: dict[str, Any], data: Path | None, output: Path) -> None:
    """Let `prepare(data, sizes)` of data.py write its arrays to `output`: `NAME.npy`, `train/NAME.npy`. UserError: it fails."""
    request = Request(
        str(folder), (sizes,), describing_process.PREPARE, data=str(data) if data else "", output=str(output)
    )
    with _asked(folder, request) as (place, ending):
        if (place / describing_process.PREPARE).is_file():
            return
        reason = (_failure(place, 0) or Failure(ending)).reason
    raise UserError(f"{folder / describing_process.DATA_MODULE} cannot prepare the data at these sizes: {reason}.")


@contextlib.contextmanager
def _asked(folder: Path, request: Request) -> Iterator[tuple[Path, str]]:
    """Run a process that answers a request; yield the folder with its answers, and how it ended if one is missing."""
    with tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True) as temporary:
        place = Path(temporary)
        (place / describing_process.REQUEST).write_text(json.dumps(asdict(request)), encoding="utf-8")
        with BoundedLog(place / OUTPUT) as log:
            ending = _run(folder / request.module, place, log)
            log.end()
        _show(folder / request.module, place / OUTPUT)
        yield place, ending


def _run(path: Path, place: Path, log: BoundedLog) -> str:
    """Run the process to its end, or to the limit of time; return a clause that says how it ended."""
    code = CODE.format(sys.path, describing_process.__name__, str(place))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=log.fileno(),
            stderr=subprocess.STDOUT,
            env=os.environ | {left_behind.VARIABLE: str(place)},
            start_new_session=True,
        )
    except OSError as error:
        return f"the interpreter {sys.executable}, which describes it, could not be started ({error.strerror})"
    started = left_behind.origin(process.pid, str(place), "")
    try:
        return _waited(process, path, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        left_behind.end(started, 0)


def _waited(process: "subprocess.Popen[bytes]", path: Path, log: BoundedLog) -> str:
    began_s, limit_s, told = time.monotonic(), _limit_s[0], False
    while True:
        left_s = began_s + limit_s - time.monotonic()
        try:
            return _ending(process.wait(max(0.0, min(POLL_S, left_s))))
        except subprocess.TimeoutExpired:
            log.bound()
        if left_s <= 0:
            return f"it did not return within {limit_s:g} s and was ended; let it return sooner, or allow more with --silence"
        if not told and time.monotonic() > began_s + PATIENCE_S:
            notice(f"{path} has run for {PATIENCE_S:.0f} s without an answer; it is ended after {limit_s:g} s.")
            told = True


def _ending(code: int) -> str:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"its process {how} before it had returned anything"


def _network(place: Path, number: int, folder: Path, sizes: dict[str, Any]) -> Network | Failure | None:
    """Return an answer; None if it is missing."""
    path = place / describing_process.network_file(number)
    try:
        if path.stat().st_size > LONGEST_BYTES:
            return Failure(f"its description has more than {LONGEST_BYTES >> 20} MiB")
        return network_data.from_text(records.read_text(path), partial(Drawing, folder, sizes))
    except OSError:
        return _failure(place, number)
    except ValueError as error:
        return Failure(f"the network that it describes cannot be used: {error}")


def _failure(place: Path, number: int) -> Failure | None:
    try:
        text = records.read_text(place / describing_process.failure_file(number))
        found: Failure = records.build(Failure, records.parse(text))
    except (OSError, ValueError):
        return None
    return found


def _show(path: Path, output: Path) -> None:
    """Show what the user's code has printed, once for every text, on standard error: standard output is for results."""
    text = output.read_text(encoding="utf-8", errors="replace").strip()
    if not text or f"{path} {text}" in _shown:
        return
    _shown.add(f"{path} {text}")
    if len(text) > MOST_SHOWN:
        text = f"{text[: MOST_SHOWN // 2]}\n...\n{text[-MOST_SHOWN // 2 :]}"
    lines = text.splitlines()
    if len(lines) > MOST_SHOWN_LINES:
        lines = [*lines[: MOST_SHOWN_LINES // 2], "...", *lines[-MOST_SHOWN_LINES // 2 :]]
    shown = "".join(f"\n    {''.join(map(_printable, line))}" for line in lines)
    notice(f"{path} printed:{shown}")


def _printable(letter: str) -> str:
    """Return a character in printable form: control characters of terminals are escaped."""
    return letter if letter.isprintable() else ascii(letter)[1:-1]
