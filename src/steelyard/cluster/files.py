"""Transfer of files between machines: list a folder, cut files into pieces, and write these to their places."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from steelyard.errors import UserError
from steelyard.files import within

# Small enough for several in memory, large enough that the time between pieces does not matter.
PIECE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Piece:
    """A part of a file. `path`: relative, with `/`; `offset` in bytes."""

    path: str
    offset: int
    data: bytes


def listing(root: Path, folder: Path) -> dict[str, tuple[int, str]]:
    """Return the files below a folder: path relative to `root` -> (size in bytes, SHA-256)."""
    return {name: (path.stat().st_size, digest(path)) for name, path in below(root, folder)}


def below(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder, sorted: path relative to `root`, with `/`, and path."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(root).as_posix(), path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pieces(root: Path, path: str, begin: int = 0) -> Iterator[Piece]:
    """Yield a file in pieces, from an offset on; an empty file is one empty piece."""
    with (root / path).open("rb") as file:
        file.seek(begin)
        data = file.read(PIECE_BYTES)
        yield Piece(path, begin, data)
        while len(data) == PIECE_BYTES:
            begin += len(data)
            data = file.read(PIECE_BYTES)
            if data:
                yield Piece(path, begin, data)


def write(root: Path, piece: Piece) -> None:
    """Write a piece at its offset and cut the file after it. UserError: the path leads out of the folder."""
    target = within.check(root, inside(root, piece.path))
    root.mkdir(parents=True, exist_ok=True)
    within.make(root, target.parent)
    with open(target, "r+b" if target.exists() else "w+b", opener=within.no_link) as file:
        file.seek(piece.offset)
        file.write(piece.data)
        file.truncate()


def inside(root: Path, path: str) -> Path:
    """Return the path of a file below a folder; UserError: the relative path would lead out of it."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise UserError(
            f"A node has sent a file with the path {path!r}, which is not inside {root}. Nothing was written."
        )
    return root / parts
