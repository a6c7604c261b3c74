"""Where a data set was found: in which folder, in which layout, and whether it is the official data."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.inputs.data.archives import walk_files

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.catalogue import DataSet, Layout


@dataclass(frozen=True)
class Source:
    """One layout of a data set on this machine.

    `identity` names the content: the official checksum where it agreed, otherwise the SHA-256 of what is
    there. `verified`: "official" (published checksum), "pinned" (checksum kept by us), "layout" (not known).
    `vectors`: a file of word vectors, or a vocabulary, beside the data, if there is one.
    """

    data: DataSet
    layout: Layout
    path: Path
    origin: str  # "folder", "package", "download", "mirror"
    identity: str
    verified: str
    vectors: Path | None = None


def find_in_folder(known: DataSet, folder: Path, vectors: str = "") -> Source:
    """Return the first official layout found in a folder (or the file itself, where a file is named).

    UserError when there is none, or when a file of the official size does not have the official checksum.
    """
    if not folder.exists():
        raise UserError(f"The data folder {folder} does not exist; name the folder that holds {_names(known)}.")
    for layout in known.layouts:
        path = _locate(layout, folder)
        if path:
            return identify(known, layout, path, "folder", _find_vectors(vectors, folder, path.parent, path))
    raise UserError(
        f"{folder} does not hold '{known.name}' in a layout we know; put {_names(known)} there "
        f"(official source: {known.home})."
    )


def identify(known: DataSet, layout: Layout, path: Path, origin: str, vectors: Path | None = None) -> Source:
    """Checksum what was found. UserError when it has the official size and not the official checksum."""
    verified, identity = "layout", ""
    if layout.digest and path.stat().st_size == layout.bytes:
        digest = digest_file(path, layout.algorithm)
        if digest != layout.digest:
            raise UserError(
                f"{path} has {layout.algorithm} {digest}, but the official '{layout.path}' has "
                f"{layout.digest}: it was damaged or changed; fetch it again."
            )
        verified, identity = "pinned" if known.package else "official", layout.identity
    return Source(known, layout, path, origin, identity or _digest_content(known, path), verified, vectors)


def digest_file(path: Path, algorithm: str) -> str:
    """Return the hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _digest_content(known: DataSet, path: Path) -> str:
    if path.is_file() and known.fingerprint == "content":
        return "sha256:" + digest_file(path, "sha256")
    whole = hashlib.sha256()
    for name in walk_files(path, re.compile(known.files)) if path.is_dir() else (".",):
        whole.update(f"{name}\0{_fingerprint(known, path / name)}\n".encode())
    return f"{'sha256' if known.fingerprint == 'content' else known.fingerprint}:{whole.hexdigest()}"


def _fingerprint(known: DataSet, path: Path) -> str:
    """Name one file of a folder; many gigabytes are not read anew by every run."""
    if known.fingerprint == "content":
        return digest_file(path, "sha256")
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _find_vectors(name: str, *folders: Path) -> Path | None:
    return next((each / name for each in folders if name and (each / name).is_file()), None)


def _locate(layout: Layout, folder: Path) -> Path | None:
    if folder.is_file():
        return folder if fnmatch(folder.name, layout.path) else None
    inside = next(iter(sorted(folder.glob(layout.path))), folder / layout.path)
    if layout.holds:
        return next((each for each in (inside, folder) if (each / layout.holds).exists()), None)
    return inside if inside.is_file() else None


def _names(known: DataSet) -> str:
    return " or ".join(f"'{each.path}'" for each in known.layouts)
