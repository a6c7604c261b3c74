"""run.json: what a run is to do, on which machine, with what; rewritten as a whole each time it changes."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest
from steelyard.files import atomic
from steelyard.plan.protocols import Protocol
from steelyard.plan.run_plan import Group, RunPlan, Skipped, Variant
from steelyard_worker import records
from steelyard_worker.protocol import METHOD

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Group", "Protocol", "RunPlan", "RunRecord", "Skipped", "Variant"]

# Format 1: the options alone; reports planned again from the workloads as they were at the time of the report.
# Format 2: the whole plan with every case.
FORMAT = 2
FILE = "run.json"
CERTIFICATES = "certificates.json"
ROUNDS = "rounds.jsonl"
PAGE = "report.html"


@dataclass(frozen=True)
class RunRecord:
    """The head of a run folder. `state`: running, interrupted, complete.

    `plan` holds every case that was requested; `unavailable` gives a reason for each environment that could not be made.
    `inputs` describes the data by group, `above_peak` says by case id why a speed is an error.
    """

    plan: RunPlan
    created: str
    state: str
    command: str
    machine: str = ""
    host: dict[str, Any] = field(default_factory=dict)
    environments: dict[str, Any] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    noise: dict[str, Any] = field(default_factory=dict)
    peak: dict[str, Any] = field(default_factory=dict)
    above_peak: dict[str, str] = field(default_factory=dict)
    worker_hash: str = ""
    method: int = METHOD
    steelyard: str = ""
    format: int = FORMAT

    @property
    def study(self) -> str:
        """Name of the study."""
        return self.plan.study.name

    @cached_property
    def available(self) -> RunPlan:
        """The plan without the cases whose environments could not be made."""
        return self.plan.without(self.unavailable)


def new(plan: RunPlan, command: str, worker_hash: str) -> RunRecord:
    """Return the record of a run that is about to begin."""
    from steelyard import __version__

    return RunRecord(
        plan=plan, created=datetime.now().astimezone().isoformat(timespec="seconds"), state="running",
        command=command, worker_hash=worker_hash, steelyard=__version__,
    )  # fmt: skip


def write(folder: Path, record: RunRecord) -> RunRecord:
    """Write run.json whole, or not at all."""
    try:
        atomic.write_text(folder / FILE, json.dumps(asdict(record), indent=1))
    except OSError as error:
        raise UserError(
            f"{folder / FILE} cannot be written ({error.strerror}). Mend that, then go on with: "
            f"steelyard run --resume {folder.name}"
        ) from error
    return record


def update(folder: Path, **changes: Any) -> RunRecord:
    """Change some fields of run.json."""
    return write(folder, replace(read(folder), **changes))


def read(folder: Path) -> RunRecord:
    """Read run.json; UserError names a file that is damaged or of another format."""
    path = folder / FILE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}), so this run cannot be used.") from None
    if not isinstance(raw, dict) or not {"format", "plan", "created", "state"} <= raw.keys():
        raise UserError(f"{path} is not the record of a run, so this run cannot be used.")
    if raw["format"] != FORMAT:
        raise UserError(
            f"{path} has format {raw['format']!r}, which another version of steelyard wrote; this version reads format "
            f"{FORMAT}. Read it with that version, or measure again."
        )
    try:
        found: RunRecord = records.build(RunRecord, raw, "run")
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}), so this run cannot be used.") from None
    return found


def new_folder(runs: Path, study: str) -> Path:
    """Create a run folder named by time and study."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = runs / f"{stamp}-{study}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(
                f"The run folder {folder} cannot be created ({error.strerror}). Name another with --runs."
            ) from None
        return folder
    raise UserError(f"{runs} holds too many runs of this second.")


def find(runs: Path, name: str) -> Path:
    """Return a run's folder by name, unique beginning, path, or `latest`."""
    if (Path(name) / FILE).is_file():
        return Path(name).absolute()
    known = sorted(path.parent.name for path in runs.glob(f"*/{FILE}"))
    if not known:
        raise UserError(f"There is no run in {runs} yet. Start one with: steelyard run")
    if name == "latest":
        return runs / known[-1]
    matching = [run for run in known if run.startswith(name)]
    if name in known or len(matching) == 1:
        return runs / (name if name in known else matching[0])
    if matching:
        raise UserError(
            f"'{name}' could be any of {len(matching)} runs: {', '.join(matching[:5])}. Give more of the name."
        )
    raise UserError(f"There is no run '{name}' in {runs}.{nearest(name, known)}")


def state(folder: Path, known: RunRecord) -> str:
    """Return a run's state as it is: nobody is left to write 'interrupted' where the process itself was killed."""
    if known.state != "running":
        return known.state
    try:
        with claim(folder):
            return "interrupted"
    except (UserError, OSError):
        return "running"


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process; a second steelyard on the same folder is refused."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            f"Another steelyard is at work on {folder.name}. Wait for it, or start a run of its own without --resume."
        ) from None
    try:
        yield
    finally:
        lock.release()
