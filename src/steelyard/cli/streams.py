"""Standard output and standard error that may be closed, full or unread. Only the standard library is imported here.

Without standard output, which gets the result, a command ends. Without standard error, which only gets messages, it goes on.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

CLOSED = "Standard output is closed, so nothing can be shown. Redirect it, for example with > /dev/null."


class NobodyReads(Exception):
    """The reader of standard output has ended, such as `head -1`. No OSError, because libraries handle those on their own."""


@contextmanager
def guarded() -> Iterator[None]:
    """Replace standard output and standard error by guards until the end of the block."""
    _fill_closed_descriptors()
    with redirect_stdout(_Output(sys.stdout)), redirect_stderr(_Messages(sys.stderr)):
        yield


def is_closed() -> bool:
    """Report whether the program was started without a standard output."""
    return isinstance(sys.stdout, _Guard) and sys.stdout.stream is None


def tell(sentence: str) -> None:
    """Print the sentence with which a command ends on standard error, or on standard output if that cannot be written."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
    if isinstance(sys.stderr, _Messages) and sys.stderr.is_lost and not is_closed():
        print(sentence)


class _Guard:
    """A guard that passes everything on to a stream; None if there is no stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def isatty(self) -> bool:
        return self.stream is not None and bool(self.stream.isatty())


class _Output(_Guard):
    def write(self, text: str) -> int:
        return self._done("write", text) or 0

    def flush(self) -> None:
        self._done("flush")

    def _done(self, what: str, *values: str) -> Any:
        if self.stream is None:
            return None
        try:
            return getattr(self.stream, what)(*values)
        except BrokenPipeError:
            _abandon(self.stream)
            raise NobodyReads from None
        except OSError:
            _abandon(self.stream)
            raise


class _Messages(_Guard):
    """Standard error; `is_lost`: something could not be written to it."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.is_lost = stream is None

    def write(self, text: str) -> int:
        if not self.is_lost:
            try:
                self.stream.write(text)
            except OSError:
                self._lose()
        return len(text)

    def flush(self) -> None:
        if not self.is_lost:
            try:
                self.stream.flush()
            except OSError:
                self._lose()

    def _lose(self) -> None:
        self.is_lost = True
        _abandon(self.stream)


def _abandon(stream: Any) -> None:
    """Discard the rest of a stream's buffer, which Python would otherwise try to write again at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _fill_closed_descriptors() -> None:
    """Open closed standard descriptors. Otherwise the next file would get their number, and receive the messages."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
