"""The output of a process in a file that keeps its beginning and its end, however much the process prints."""

import ctypes
import os
from pathlib import Path
from types import TracebackType

# What is kept of the beginning, and of the end, and how much a file takes of the disk before its middle is given back.
KEPT_BYTES = 4 * 2**20
LONGEST_BYTES = 16 * 2**20
OMITTED = "[steelyard: at least {0:,} bytes were left out here. A log keeps its first and its last {1:g} MiB.]\n"
# Of fallocate(2): give blocks of the disk back, and keep the length of the file.
PUNCH_HOLE = 3
PAGE_BYTES = 4096


class BoundedLog:
    """A file to which a process appends by itself. `left_out`: at least so many bytes were taken out of its middle."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._hole = 0  # bytes after the beginning that take no room of the disk any more
        self._cut = 0  # bytes that were taken out where a file cannot have holes
        self.left_out = 0

    def __enter__(self) -> "BoundedLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        os.close(self._file)

    def fileno(self) -> int:
        """Return the file's number, for the process that prints into it."""
        return self._file

    @property
    def size(self) -> int:
        """The present length of the file in bytes; one call of the system."""
        return os.fstat(self._file).st_size

    def bound(self) -> None:
        """Give the middle of the file back to the disk, if it has become large; the process goes on to append meanwhile.

        Nothing of the end is lost by that. Where files cannot have holes, the file is cut, and what the process writes in that
        moment is lost. OSError: the file cannot be written.
        """
        size = self.size
        if size - self._hole <= LONGEST_BYTES:
            return
        hole = (size - 2 * KEPT_BYTES) // PAGE_BYTES * PAGE_BYTES
        if _punched(self._file, KEPT_BYTES, hole):
            self._hole = hole
        else:
            end = os.pread(self._file, KEPT_BYTES, size - KEPT_BYTES)
            self._cut += self.size - KEPT_BYTES - len(end)
            self._replace_end(end)

    def end(self) -> None:
        """Take the middle out of the file of a process that has ended, and say there how much is missing."""
        size = self.size
        if size > 2 * KEPT_BYTES or self._cut:
            end = os.pread(self._file, KEPT_BYTES, max(KEPT_BYTES, size - KEPT_BYTES))
            end = end[end.find(b"\n") + 1 :]
            self.left_out = self._cut + size - KEPT_BYTES - len(end)
            # It stands on a line of its own, whatever the line before it.
            self._replace_end(b"\n" + OMITTED.format(self.left_out, KEPT_BYTES / 2**20).encode() + end)

    def _replace_end(self, end: bytes) -> None:
        os.ftruncate(self._file, KEPT_BYTES)
        os.write(self._file, end)


def _punched(file: int, begin: int, count: int) -> bool:
    """Give blocks of a file back to the disk; return whether that was possible."""
    allocate = getattr(ctypes.CDLL(None), "fallocate", None)
    if allocate is None:
        return False
    allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(allocate(file, PUNCH_HOLE, begin, count) == 0)
