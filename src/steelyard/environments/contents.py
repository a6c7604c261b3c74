"""What an interpreter can import: the SHA-256 of every file in its package folders and its standard library.

Reading everything takes seconds per gigabyte. So each digest is kept with what shows that the file was not written since: its
size, modification time, inode and change time. A program can set a file's modification time, but not its change time.
Byte code in `__pycache__` does not count, because workers never read it (see `interpreter.command`).
"""

import csv
import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sep
from os.path import normpath, realpath, relpath
from pathlib import Path

from steelyard.errors import UserError

# A standard library holds the package folder of its own interpreter, from which other environments do not import.
NOT_IMPORTED = ("__pycache__", "site-packages", "dist-packages")
MOST_FILES = 500_000

# By file name: size in bytes, modification time in ns, inode, change time in ns.
Files = dict[str, list[int]]


@dataclass(frozen=True)
class Contents:
    """`folders` maps each folder to its files, `digests` each path to its SHA-256, written as in RECORD files.

    `digest` is a hash of all contents, the same wherever the folders are.
    """

    folders: dict[str, Files]
    digests: dict[str, str]
    digest: str


NOTHING = Contents({}, {}, "")


def read(
    roots: Iterable[str], known: Contents = NOTHING, written: Mapping[str, str] | None = None, since_ns: int = 0
) -> Contents:
    """Return the contents of folders and single files. A file that is as in `known` is not read; it costs about 8 us.

    `written`: the digests of files that an installer has just written; those modified since `since_ns` are not read either.
    Returns `known` itself when no file was touched. Raises `UserError` for more than 500,000 files.
    """
    folders: dict[str, Files] = {}
    labels: list[tuple[str, str, Files]] = []
    for label, folder, files in _walk(roots):
        folders.setdefault(folder, {}).update(files)
        labels.append((label, folder, files))
    if folders == known.folders:
        return known
    digests = dict.fromkeys(paths(folders), "")
    for folder, files in folders.items():
        before = known.folders.get(folder, {})
        for name, facts in files.items():
            path = folder + sep + name
            if facts == before.get(name):
                digests[path] = known.digests[path]
            elif written and facts[1] >= since_ns:
                digests[path] = written.get(path, "")
    unknown = [path for path, digest in digests.items() if not digest]
    with ThreadPoolExecutor() as pool:
        digests.update(zip(unknown, pool.map(_sha256, unknown), strict=True))
    return Contents(folders, digests, _total(labels, digests))


def paths(folders: Mapping[str, Files]) -> list[str]:
    """Return the path of every file, in the order of `Contents.digests`."""
    return [folder + sep + name for folder, files in folders.items() for name in files]


def _total(labels: Iterable[tuple[str, str, Files]], digests: Mapping[str, str]) -> str:
    lines = sorted(
        f"{label}/{name}\0{digests[folder + sep + name]}\n"
        for label, folder, files in labels
        for name in files
        # RECORD lists commands, which contain the path of the environment.
        if not (name == "RECORD" and label.endswith(".dist-info"))
    )
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def recorded(site: str) -> dict[str, str]:
    """Return what the RECORD files of a package folder list: {path: SHA-256, empty where none is given}.

    Byte code and files outside of the folder, such as commands, are left out, because nothing imports them.
    """
    found = {}
    for record in sorted(Path(site).glob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", errors="replace", newline="") as stream:
            for row in csv.reader(stream):
                path = normpath(site + sep + row[0]) if len(row) == 3 else ""
                if path.startswith(site + sep) and "__pycache__" not in path:
                    found[path] = row[1].removeprefix("sha256=")
    return found


def find_damage(contents: Contents, site: str, listed: Mapping[str, str], known: Contents = NOTHING) -> str:
    """Return the first difference between a package folder and its RECORD files; empty when there is none.

    `listed`: the result of `recorded`. A file without a digest there, such as RECORD itself, is compared with `known`.
    """
    for path, digest in listed.items():
        found, expected = contents.digests.get(path), digest or known.digests.get(path)
        if found is None or expected not in (None, found):
            return f"{relpath(path, site)} {'was changed' if found else 'is missing'}"
    stray = (path for path in contents.digests if path.startswith(site + sep) and path not in listed)
    return next((f"{relpath(path, site)} belongs to no package" for path in stray), "")


def _walk(roots: Iterable[str]) -> Iterator[tuple[str, str, Files]]:
    """Yield (label, folder, files): the label does not depend on where the root is. No folder is visited twice."""
    seen: set[tuple[int, int]] = set()
    count = 0
    for root in map(realpath, roots):
        if (path := Path(root)).is_file():
            yield "", str(path.parent), {path.name: _facts(path.stat())}
        waiting = [root] if path.is_dir() else []
        while waiting:
            here = waiting.pop()
            files, inner = _listed(here, seen)
            waiting += inner
            count += len(files)
            if count > MOST_FILES:
                raise UserError(
                    f"The interpreter imports from folders with more than {MOST_FILES:,} files, such as {root}. Name an "
                    "interpreter that has an environment of its own."
                )
            yield f"{path.name}{here[len(root) :]}", here, files


def _listed(folder: str, seen: set[tuple[int, int]]) -> tuple[Files, list[str]]:
    """Return a folder's files and the folders in it; nothing when it was seen before or cannot be read."""
    files: Files = {}
    inner: list[str] = []
    try:
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            return files, inner
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir():
                    files[entry.name] = _facts(_status(entry))
                elif entry.name not in NOT_IMPORTED:
                    inner.append(entry.path)
    except OSError:
        return {}, []
    return files, inner


def _status(entry: "os.DirEntry[str]") -> os.stat_result:
    try:
        return entry.stat()
    except OSError:  # a link to nothing
        return entry.stat(follow_symlinks=False)


def _facts(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]


def _sha256(path: str) -> str:
    """Return a file's digest; a pipe, a device or a file that cannot be read has a word in its place."""
    try:
        if not Path(path).is_file():
            return "special"
        with Path(path).open("rb") as stream:
            return urlsafe_b64encode(hashlib.file_digest(stream, "sha256").digest()).rstrip(b"=").decode()
    except OSError:
        return "unreadable"
