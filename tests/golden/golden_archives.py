"""Recorded runs in archives: one for each kind, the same bytes whenever and wherever it is packed."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

RUNS = Path(__file__).parent / "runs"
# What is written again whenever a record is read.
DERIVED = (".html", ".sqlite", "lock")


def pack(kind: str, root: Path) -> Path:
    """Pack all files below a folder as the record of a kind; returns the archive."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.name.endswith(DERIVED):
                _add(archive, path.relative_to(root).as_posix(), path.read_bytes())
    RUNS.mkdir(exist_ok=True)
    packed = RUNS / f"{kind}.tar.xz"
    packed.write_bytes(lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    return packed


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), 0o644, 0
    archive.addfile(member, io.BytesIO(content))


def unpack(kind: str, root: Path) -> None:
    """Unpack the record of a kind into a folder."""
    with tarfile.open(RUNS / f"{kind}.tar.xz") as archive:
        archive.extractall(root, filter="data")


def kinds() -> list[str]:
    """Return the kinds that have a record, by name."""
    return sorted(path.name.removesuffix(".tar.xz") for path in RUNS.glob("*.tar.xz"))
