"""What environments lie in the cache, how much disk they take, and their removal."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from steelyard.environments.execution import remove_folder
from steelyard.environments.install import environments_folder
from steelyard.environments.shelf import alone
from steelyard.environments.stamp import size_bytes
from steelyard.environments.verification import is_unchanged, read_marker
from steelyard.errors import UserError, nearest


@dataclass(frozen=True)
class Kept:
    """One environment as it lies on disk.

    `state` is `ready`, `changed` since it was verified (the next use examines it, and makes it anew if it
    is broken), or `unfinished`. `version` is the lock's. Package files may be shared with uv's own
    cache by hard links, so removing an environment can free less than `size_bytes`.
    """

    folder: Path
    framework: str
    version: str
    accelerator: str
    size_bytes: int
    state: Literal["ready", "changed", "unfinished"]
    verified_at: str

    @property
    def names(self) -> tuple[str, str, str]:
        """Every name a person may call it by."""
        return self.framework, self.name, self.folder.name

    @property
    def name(self) -> str:
        return f"{self.framework}@{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return {**asdict(self), "name": self.name, "folder": str(self.folder)}


def list_environments() -> list[Kept]:
    """What lies in the cache, whole or not."""
    folders = environments_folder()
    if not folders.is_dir():
        return []
    return [_kept(folder) for folder in sorted(folders.iterdir()) if _is_environment(folder)]


def remove(names: list[str]) -> list[Kept]:
    """Remove environments by framework (each of its versions), `framework@version` or folder name.

    `["all"]` removes all. Returns what was removed; raises `UserError` for a name nothing answers to.
    """
    kept = list_environments()
    chosen: list[Kept] = []
    for name in names:
        found = [one for one in kept if name in ("all", *one.names)]
        if not found and name != "all":
            known = sorted({each for one in kept for each in one.names[:2]})
            raise UserError(f"There is no environment '{name}' on this machine.{nearest(name, known)}")
        chosen += [one for one in found if one not in chosen]
    for one in chosen:
        with alone(one.folder):
            remove_folder(one.folder)
    return chosen


def _is_environment(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name.count("-") >= 3 and folder.is_dir()


def _kept(folder: Path) -> Kept:
    framework, version, accelerator, _ = folder.name.rsplit("-", 3)
    marker = read_marker(folder)
    if marker is None:
        return Kept(folder, framework, version, accelerator, size_bytes(folder), "unfinished", "")
    state: Literal["ready", "changed"] = "ready" if is_unchanged(folder, marker) else "changed"
    return Kept(folder, framework, version, accelerator, size_bytes(folder), state, marker.verified_at)
