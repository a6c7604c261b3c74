"""Find a data set on this machine: in which folder, in which layout, and whether it is the official data."""

import hashlib
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from steelyard.errors import UserError
from steelyard.inputs.data.archives import walk_files
from steelyard.inputs.data.catalogue import DataSet, Layout


@dataclass(frozen=True)
class Source:
    """One layout of a data set on this machine.

    origin: "folder", "package", "download" or "mirror". identity: the official checksum if it matches, otherwise the
    SHA-256 of the content. verified: "official" (published checksum), "pinned" (checksum stored in the catalogue) or
    "layout" (content unknown). companion: an optional file stored with the data: word vectors or a vocabulary.
    """

    data: DataSet
    layout: Layout
    path: Path
    origin: str
    identity: str
    verified: str
    companion: Path | None = None


def find_in_folder(data_set: DataSet, folder: Path, companion: str = "") -> Source:
    """Return the first official layout found in a folder. `folder` may also be the file itself.

    `companion` is the name of an optional file to look for next to the data. UserError: no layout was found, or a file of
    the official size does not have the official checksum.
    """
    layout, path = locate(data_set, folder)
    return identify(data_set, layout, path, "folder", _find_companion(companion, folder, path.parent, path))


def locate(data_set: DataSet, folder: Path) -> tuple[Layout, Path]:
    """Return the first layout of a data set that a folder holds, and where. UserError: it holds none. No content is read."""
    if not folder.exists():
        raise UserError(f"The data folder {folder} does not exist; name the folder that holds {_names(data_set)}.")
    for layout in data_set.layouts:
        if path := _locate(layout, folder):
            return layout, path
    raise UserError(
        f"{folder} does not hold '{data_set.name}' in a known layout; put {_names(data_set)} there "
        f"(official source: {data_set.home})."
    )


def identify(data_set: DataSet, layout: Layout, path: Path, origin: str, companion: Path | None = None) -> Source:
    """Return the source with its checksum. UserError: the size is official, but the checksum is not."""
    verified, identity = "layout", ""
    if layout.digest and path.stat().st_size == layout.bytes:
        digest = digest_file(path, layout.algorithm)
        if digest != layout.digest:
            raise UserError(
                f"{path} has {layout.algorithm} {digest}, but the official '{layout.path}' has "
                f"{layout.digest}: it was damaged or changed; download it again."
            )
        verified, identity = "pinned" if data_set.package else "official", layout.identity
    return Source(data_set, layout, path, origin, identity or _digest_content(data_set, path), verified, companion)


def digest_file(path: Path, algorithm: str) -> str:
    """Return the hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _digest_content(data_set: DataSet, path: Path) -> str:
    """Identify a file or folder without a checksum. Data sets of many gigabytes are identified without reading them."""
    by_content = data_set.fingerprint == "content"
    if path.is_file() and by_content:
        return "sha256:" + digest_file(path, "sha256")
    whole = hashlib.sha256()
    for name in walk_files(path, re.compile(data_set.files)) if path.is_dir() else (".",):
        status = (path / name).stat()
        found = digest_file(path / name, "sha256") if by_content else f"{status.st_size} {status.st_mtime_ns}"
        whole.update(f"{name}\0{found}\n".encode())
    return f"{'sha256' if by_content else data_set.fingerprint}:{whole.hexdigest()}"


def _find_companion(name: str, *folders: Path) -> Path | None:
    return next((folder / name for folder in folders if name and (folder / name).is_file()), None)


def _locate(layout: Layout, folder: Path) -> Path | None:
    """Return the path of a layout in a folder, or of the folder itself if it is the layout; None if it is not there."""
    if folder.is_file():
        return folder if fnmatch(folder.name, layout.path) else None
    inside = next(iter(sorted(folder.glob(layout.path))), folder / layout.path)
    if layout.contains:
        return next((path for path in (inside, folder) if (path / layout.contains).exists()), None)
    return inside if inside.is_file() else None


def _names(data_set: DataSet) -> str:
    return " or ".join(f"'{layout.path}'" for layout in data_set.layouts)
