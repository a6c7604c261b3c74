"""Find a data set on this machine: in which folder, in which layout, and whether it is the official data."""

import hashlib
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from steelyard.errors import UserError
from steelyard.inputs.data.archives import walk_files
from steelyard.inputs.data.catalogue import DataSet
from steelyard.inputs.data.damage import check_regular
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.layouts import UNKNOWN, Layout, Part, pattern_of


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
    return identify(data_set, layout, path, "folder", find_companion(companion, folder, path.parent, path))


def locate(data_set: DataSet, folder: Path) -> tuple[Layout, Path]:
    """Return the first layout of a data set that a folder holds completely, and where. No content is read.

    UserError names the file that is missing from the layout that is most nearly complete, or is a pipe or a device.
    """
    if not folder.exists():
        raise UserError(f"The data folder {folder} does not exist; name the folder that holds {_wanted(data_set)}.")
    lacking: list[tuple[float, Layout, Path, Part]] = []
    for layout in data_set.layouts:
        for place in _places(layout, folder):
            missing = [part for part in layout.parts if not _is_there(place, part)] if layout.is_folder else []
            if not missing:
                return layout, place
            lacking.append((len(missing) / len(layout.parts), layout, place, missing[0]))
    # A folder that holds other things lacks every part.
    lacking = [each for each in lacking if each[0] < 1 or each[2] != folder]
    if not lacking:
        raise UserError(
            f"{folder} does not hold '{data_set.name}' in a known layout; put {_wanted(data_set)} there (official source: "
            f"{data_set.home}). {data_set.hint}"
        )
    _, layout, place, part = min(lacking, key=lambda each: each[0])
    raise UserError(
        f"{place} does not hold '{' or '.join(part.forms)}', which is part of the layout '{layout.name}' of "
        f"'{data_set.name}'; put it there. {data_set.hint}"
    )


def identify(data_set: DataSet, layout: Layout, path: Path, origin: str, companion: Path | None = None) -> Source:
    """Return the source with its checksum. UserError: the size is official, but the checksum is not."""
    verified, identity = UNKNOWN, ""
    if layout.digest and path.stat().st_size == layout.bytes:
        digest = digest_file(path, layout.algorithm)
        if digest != layout.digest:
            raise UserError(
                f"{path} has {layout.algorithm} {digest}, but the official '{layout.path}' has "
                f"{layout.digest}: it was damaged or changed; download it again."
            )
        verified, identity = "pinned" if data_set.package else "official", layout.identity
    return Source(data_set, layout, path, origin, identity or digest_content(data_set, path), verified, companion)


def digest_file(path: Path, algorithm: str) -> str:
    """Return the hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def digest_content(data_set: DataSet, path: Path) -> str:
    """Return an identity of a file or folder without a checksum; data sets of many gigabytes are not read for it."""
    by_content = data_set.fingerprint == "content"
    if path.is_file() and by_content:
        return "sha256:" + digest_file(path, "sha256")
    whole = hashlib.sha256()

    def described(name: str) -> str:
        status = check_regular(path / name)
        content = digest_file(path / name, "sha256") if by_content else f"{status.st_size} {status.st_mtime_ns}"
        return f"{name}\0{content}\n"

    names = walk_files(path, re.compile(data_set.files)) if path.is_dir() else iter((".",))
    for line in accepted(map(attempted(described), names)):
        whole.update(line.encode("utf-8", "surrogateescape"))  # names of files may be any bytes
    return f"{'sha256' if by_content else data_set.fingerprint}:{whole.hexdigest()}"


def find_companion(name: str, *folders: Path) -> Path | None:
    """Return the first file of this name in the folders; None without a name or a file."""
    return next((folder / name for folder in folders if name and (folder / name).is_file()), None)


def _places(layout: Layout, folder: Path) -> list[Path]:
    """Return where a layout may be: below the folder, or the folder or file itself."""
    if not folder.is_dir():
        check_regular(folder)
        return [folder] if not layout.is_folder and fnmatch(folder.name, pattern_of(layout.path)) else []
    if layout.path == ".":
        return [folder]
    inside = sorted(folder.glob(pattern_of(layout.path)))
    if layout.is_folder:
        return [place for place in (*inside[:1], folder) if place.is_dir()]
    for path in inside:
        check_regular(path)
    return inside[:1]


def _is_there(place: Path, part: Part) -> bool:
    """Report whether the first level of a part exists: a folder, or the file itself. What is in folders the reader checks."""
    for path in part.path.split("|"):
        first, _, below = path.partition("/")
        if found := next(place.glob(pattern_of(first)), None):
            if not below:
                check_regular(found)
            return True
    return False


def _wanted(data_set: DataSet) -> str:
    """Return the first file of each layout, to be named in messages."""
    first = [
        f"{layout.path}/{layout.parts[0].path}" if layout.is_folder else layout.path for layout in data_set.readable
    ]
    return " or ".join(dict.fromkeys(f"'{pattern_of(path)}'" for path in first))
