"""Why a trial with several ranks did not finish: which rank, and for what reason, from what each has recorded."""

import contextlib
import json
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.measure.processes import OUT_OF_MEMORY
from steelyard_worker import protocol
from steelyard_worker.protocol import EVENTS, PLACE, rank_folder

# The longest time that a process needs to write its current position.
WRITING_S = 5.0
LINE = re.compile(r'File "(.*)", line (\d+) in (\S+)')
# Parts of messages that are the consequence of another rank's end.
CONSEQUENCE = re.compile(
    r"connect|peer|socket|gloo|nccl|broken pipe|time.?out|timed out|unavailable|shut.?down|abort|EOF|coordinat|heartbeat",
    re.IGNORECASE,
)
ENDINGS = ("done", "error", "stopped")


@dataclass(frozen=True)
class RankState:
    """The last things that a rank has recorded. `ending`: its event `done`, `error` or `stopped`, if it has one."""

    rank: int
    pid: int
    heard_ns: int
    ending: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of its end; empty if it has not recorded any end."""
        return str(self.ending.get("event", ""))


def states(trial: Path, count: int) -> list[RankState]:
    """Return what the ranks of a trial have recorded; damaged lines are left out."""
    return [_state(rank_folder(trial, rank), rank) for rank in range(count)]


def _state(folder: Path, rank: int) -> RankState:
    pid, heard, ending = 0, 0, dict[str, Any]()
    with contextlib.suppress(OSError):
        for line in (folder / EVENTS).read_text(encoding="utf-8", errors="replace").splitlines():
            event = _parsed(line)
            heard = int(event.get("t_ns", heard))
            pid = int(event.get("pid", pid))
            if event.get("event") in ENDINGS:
                ending = event
    return RankState(rank, pid, heard, ending)


def _parsed(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def cause(trial: Path, count: int, otherwise: tuple[str, str]) -> tuple[str, str]:
    """Return the (kind, message) of the error of a trial whose launcher has ended; `otherwise`: what its exit code says.

    An error that says nothing of a connection comes first: when a rank has failed, the others lose their connections, and
    launchers kill those that wait. Otherwise a rank that recorded no end was killed, and the errors of others follow from that.
    """
    found = states(trial, count)
    if otherwise[0] == "disk-full":
        return otherwise
    own = _own_errors(found)
    aborted = "was ended by signal" in otherwise[1] and "signal 9" not in otherwise[1]
    vanished = [each for each in found if not each.kind and each.pid] if not aborted else []
    if not own and vanished and len(vanished) < count:
        first = min(vanished, key=lambda each: each.heard_ns)
        return "killed", f"Rank {first.rank} of {count} ended without a record. {OUT_OF_MEMORY}"
    failed = own or [each for each in found if each.kind == "error"]
    return _first(failed, count) if failed else otherwise


def own_error(trial: Path, count: int) -> tuple[str, str] | None:
    """Return the (kind, message) of the first error that the ranks here have recorded and that follows from no other rank."""
    failed = _own_errors(states(trial, count))
    return _first(failed, count) if failed else None


def _own_errors(found: list[RankState]) -> list[RankState]:
    return [
        each for each in found if each.kind == "error" and not CONSEQUENCE.search(str(each.ending.get("message", "")))
    ]


def _first(failed: list[RankState], count: int) -> tuple[str, str]:
    first = min(failed, key=lambda each: each.heard_ns)
    message = str(first.ending.get("message", "")).rstrip(".")
    kind = str(first.ending.get("kind", "crash"))
    return kind if kind in protocol.ERROR_KINDS else "crash", f"Rank {first.rank} of {count}: {message}."


def places(trial: Path, count: int) -> str:
    """Ask every running rank for its current position in the code, and return a sentence about it; empty if none answers."""
    found = states(trial, count)
    for each in found:
        if each.pid and not each.kind:
            with contextlib.suppress(OSError):
                os.kill(each.pid, signal.SIGUSR1)
    deadline = time.monotonic() + WRITING_S
    texts: dict[int, str] = {}
    while time.monotonic() < deadline and len(texts) < count:
        time.sleep(0.1)
        texts = {each.rank: text for each in found if (text := _place(rank_folder(trial, each.rank) / PLACE))}
    return ", ".join(f"rank {rank} was in {text}" for rank, text in texts.items())


def _place(path: Path) -> str:
    """Return the innermost function that the main thread, which is listed last, was in."""
    with contextlib.suppress(OSError):
        last = path.read_text(encoding="utf-8", errors="replace").split("hread ")[-1]
        if match := LINE.search(last):
            return f"{match[3]} ({Path(match[1]).name}, line {match[2]})"
    return ""
