"""The output of a process in a file that keeps its beginning and its end, however much the process prints."""

import os
from pathlib import Path
from types import TracebackType

# What is kept of the beginning, and of the end, and the length at which the middle is taken out while the process still runs.
KEPT_BYTES = 4 * 2**20
LONGEST_BYTES = 16 * 2**20
OMITTED = "[steelyard: at least {0:,} bytes were left out here. A log keeps its first and its last {1:g} MiB.]\n"


class BoundedLog:
    """A file to which a process appends by itself; `cut`, called now and then, takes its middle out.

    The process has the file open for appending, so that it goes on at the new end. What it writes while the file is being cut
    may be lost uncounted; the file is much longer then than what is kept. `left_out`: at least so many bytes were taken out.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._note = b""
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

    def cut(self, longest: int = LONGEST_BYTES) -> None:
        """Take the middle out of a file that is longer than `longest` bytes; OSError: it cannot be written."""
        size = self.size
        if size <= max(longest, 2 * KEPT_BYTES + len(self._note)):
            return
        end = os.pread(self._file, KEPT_BYTES, size - KEPT_BYTES)
        end = end[end.find(b"\n") + 1 :]
        self.left_out += self.size - KEPT_BYTES - len(self._note) - len(end)
        # It stands on a line of its own, whatever the line before it.
        self._note = b"\n" + OMITTED.format(self.left_out, KEPT_BYTES / 2**20).encode()
        os.ftruncate(self._file, KEPT_BYTES)
        for part in (self._note, end):
            os.write(self._file, part)
