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

# Size in bytes, modification time in ns, inode, change time in ns, and the SHA-256 as RECORD files write it.
Entry = list[int | str]
Files = dict[str, Entry]


@dataclass(frozen=True)
class Contents:
    """`folders` maps each folder to its files; `digest` is a hash of all contents, the same wherever the folders are."""

    folders: dict[str, Files]
    digest: str

    def sha256(self, path: str) -> str:
        """Return a file's digest; empty when there is no such file."""
        folder, _, name = path.rpartition(sep)
        entry = self.folders.get(folder, {}).get(name)
        return str(entry[4]) if entry else ""


NOTHING = Contents({}, "")


def read(
    roots: Iterable[str], known: Contents = NOTHING, written: Mapping[str, str] | None = None, since_ns: int = 0
) -> Contents:
    """Return the contents of folders and single files; about 7 us per file that is as in `known`, which is not read.

    `written`: the digests of files that an installer has just written; those modified since `since_ns` are not read either.
    Returns `known` itself when no file was touched. Raises `UserError` for more than 500,000 files.
    """
    folders: dict[str, Files] = {}
    labelled: list[tuple[str, Entry]] = []
    unknown: list[tuple[str, Entry]] = []
    for label, folder, files in _walk(roots):
        before = known.folders.get(folder, {})
        for name, entry in files.items():
            path = folder + sep + name
            labelled.append((f"{label}/{name}", entry))
            if entry == before.get(name, ())[:4]:
                entry.append(before[name][4])
            elif written and written.get(path) and int(entry[1]) >= since_ns:
                entry.append(written[path])
            else:
                unknown.append((path, entry))
        folders.setdefault(folder, {}).update(files)
    if folders == known.folders:
        return known
    with ThreadPoolExecutor() as pool:
        digests = pool.map(_sha256, [path for path, _ in unknown])
        for (_, entry), digest in zip(unknown, digests, strict=True):
            entry.append(digest)
    # RECORD lists commands, which contain the path of the environment.
    lines = sorted(f"{name}\0{entry[4]}\n" for name, entry in labelled if not name.endswith(".dist-info/RECORD"))
    return Contents(folders, hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest())


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
        found, expected = contents.sha256(path), digest or known.sha256(path)
        if not found or expected not in ("", found):
            return f"{relpath(path, site)} {'was changed' if found else 'is missing'}"
    for folder, files in contents.folders.items():
        if (folder + sep).startswith(site + sep):
            for name in files:
                if folder + sep + name not in listed:
                    return f"{relpath(folder + sep + name, site)} belongs to no package"
    return ""


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


def _facts(status: os.stat_result) -> Entry:
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
