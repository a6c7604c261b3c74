"""What the cache holds: its disk space by kind, and what nothing uses any more."""

import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steelyard import environments
from steelyard.certificates import method, rule_checks
from steelyard.certificates import record as certificates
from steelyard.environments import EnvironmentName, EnvironmentSpec
from steelyard.errors import UserError
from steelyard.files.folders import remove_folder, size_bytes
from steelyard.files.paths import cache_folder
from steelyard.host import exclusive
from steelyard.results import run_folders
from steelyard.results.trials import JOB
from steelyard_worker import records

# Kind -> folders of the cache that hold its entries.
FOLDERS = {
    "environments": ("environments",),
    "downloads": ("data/downloads",),
    "inputs": (
        "weights",
        "data/prepared",
        "data/orders",
        "data/rates",
        "data/synthetic",
        "data/update-rules",
        "networks",
    ),
    "certificates": ("certificates", "certificates/references", "certificates/rules"),
    "compiled code": ("compiled",),
    "compiled packages": ("wheels",),
    "models of ports": ("ports", "ports/arrays"),
    "parts of cluster runs": ("cluster/runs", "cluster/sources", "cluster/inputs"),
}
# The names that steelyard gives to entries. The cache may be any folder of the user's, so nothing else is removed.
OWN_NAME = re.compile(r"([\w.@+-]+-)?[0-9a-f]{12,64}(\.json|\.partial|\.npy)?")
# References only serve to certify further cases, compiled code to start faster, and compiled packages to make an environment
# again. No record names them: their age decides.
KEPT_DAYS = 30
AGEING = ("certificates", "compiled code", "compiled packages", "models of ports", "parts of cluster runs")


@dataclass(frozen=True)
class Entry:
    """One file or folder of the cache. `used`: a run, a lock file or this version of steelyard needs it."""

    kind: str
    path: Path
    size_bytes: int
    used: bool


@dataclass(frozen=True)
class Share:
    """All entries of one kind together; sizes in bytes. Package files can be hard links into uv's own cache, so removing
    environments can free less than their size.
    """

    kind: str
    folder: str
    entries: int
    size_bytes: int
    unused: int
    unused_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def entries(runs: Path) -> list[Entry]:
    """Return everything in the cache; inputs that a run in the folder `runs` names are used."""
    needed = _named_by(runs) | _environments()
    return [
        Entry(kind, path, size_bytes(path), path.suffix != ".partial" and _is_used(kind, path, needed))
        for kind, folders in FOLDERS.items()
        for folder in folders
        for path in _entries(cache_folder() / folder)
    ]


def shares(found: list[Entry]) -> list[Share]:
    """Return the sums of each kind."""
    return [_share(kind, [entry for entry in found if entry.kind == kind]) for kind in FOLDERS]


def prune(runs: Path) -> list[Entry]:
    """Remove what nothing uses, and return it. UserError: a run is in progress, or something cannot be removed."""
    with exclusive.use(
        lambda _: None, exclusive.Patience(beside=True), command="steelyard cache prune", of_machine=False
    ) as alone:
        if not alone or any(run_folders.in_use(runs / name) for name in run_folders.names(runs)):
            raise UserError("A run is in progress, so nothing was removed from the cache. Wait until it has ended.")
        unused = [entry for entry in entries(runs) if not entry.used]
        for entry in unused:
            _remove(entry)
    return unused


def _entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob("*")):
        if path.suffix != ".lock" and not (folder.name == "certificates" and path.is_dir()):
            yield path


def _share(kind: str, of_kind: list[Entry]) -> Share:
    unused = [entry.size_bytes for entry in of_kind if not entry.used]
    total = sum(entry.size_bytes for entry in of_kind)
    return Share(kind, str(cache_folder() / FOLDERS[kind][0]), len(of_kind), total, len(unused), sum(unused))


def _is_used(kind: str, path: Path, needed: set[Path]) -> bool:
    if kind == "downloads" or not OWN_NAME.fullmatch(path.name):
        return True
    if path.suffix == ".json":
        if path.parent.name == rule_checks.FOLDER:
            return rule_checks.find(path.stem) is not None
        found = certificates.find(path.stem)
        return found is not None and found.method == method.VERSION
    if kind in AGEING:
        return time.time() - path.stat().st_mtime < KEPT_DAYS * 86_400
    return path in needed


def _environments() -> set[Path]:
    """Return the folders of all environments that the lock files of this version describe."""
    locks = environments.read_locks()
    names = [EnvironmentName(lock.framework, lock.version) for lock in locks]
    planned = (
        each
        for accelerator in {lock.accelerator for lock in locks}
        for each in environments.plan_environments(names, accelerator, locks).values()
    )
    return {cache_folder() / "environments" / each.folder_name for each in planned if isinstance(each, EnvironmentSpec)}


def _named_by(runs: Path) -> set[Path]:
    """Return the folders of inputs that the jobs of all runs name."""
    found: set[str] = set()
    for path in (*runs.glob(f"*/trials/*/{JOB}"), *runs.glob(f"*/certificates/*/{JOB}")):
        try:
            job = records.parse(records.read_text(path))
            found |= {job["weights"], *(job["data"][name] for name in ("synthetic", "prepared", "order"))}
            found |= {job[name] for name in ("rates", "networks", "compared") if name in job}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged job is reported where its run is read
    return {Path(name) for name in found}


def _remove(entry: Entry) -> None:
    try:
        if entry.kind == "environments":
            environments.remove([entry.path.name])
        elif entry.path.is_dir():
            remove_folder(entry.path)
            entry.path.with_name(f"{entry.path.name}.lock").unlink(missing_ok=True)
        else:
            entry.path.unlink()
    except OSError as error:
        where = error.filename or entry.path
        raise UserError(f"{where} cannot be removed ({error.strerror}). Check its permissions.") from None
