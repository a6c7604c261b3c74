"""The search for settings before the rounds of a run: search.json, and the processes in the folder `search`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard_worker import records
from steelyard_worker.job_kinds import KINDS, SEARCH

FOLDER = KINDS[SEARCH].folder
FILE = "search.json"
USUAL, CHOSEN, LEFT, FAILED, REJECTED = "usual", "chosen", "left behind", "failed", "not certified"


@dataclass(frozen=True)
class Tried:
    """Settings that were tried. `settings`: `mode` or knob -> value, where they differ from the usual ones.

    `times_ns`: nanoseconds per step of each of its processes. `outcome`: usual, chosen, left behind, failed or not certified, and
    `reason` why it failed or was rejected.
    """

    settings: dict[str, str]
    times_ns: tuple[float, ...]
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Searched:
    """A search that has ended: `tried` in the order of the first tries. `left_out`: settings for which there was no time."""

    tried: tuple[Tried, ...]
    left_out: int
    seconds: float

    @property
    def processes(self) -> int:
        """The number of processes that ran to the end."""
        return sum(len(each.times_ns) for each in self.tried)

    @property
    def chosen(self) -> Tried | None:
        """The settings that the rounds compared with the usual ones; None if none of the tried ones could be."""
        return next((each for each in self.tried if each.outcome == CHOSEN), None)


def write(run: Path, found: Searched) -> None:
    """Write search.json atomically."""
    atomic.write_text(run / FILE, json.dumps(asdict(found), indent=1))


def read(run: Path) -> Searched | None:
    """Return the search of a run; None if there was none, or it has not finished. UserError: the file is damaged."""
    path = run / FILE
    if not path.exists():
        return None
    try:
        found: Searched = records.build(Searched, records.parse(records.read_text(path)), FILE)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}). Delete it: the verdicts do not need it.") from None
    return found
