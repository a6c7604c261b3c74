"""Text files of a user: UTF-8 with or without a byte order mark; lines end in LF or CR LF, and in nothing else.

Other characters that Unicode calls line ends, such as U+2028, are characters of a line.
"""

from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import UserError

MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8


def read_text(path: Path) -> str:
    """Return a file with LF as the only line end. UserError: it is not UTF-8."""
    return decoded(path.read_bytes(), str(path))


def decoded(content: bytes, where: str) -> str:
    """Return the text of a small file, as `read_text` does; lines may also end in CR alone. UserError names `where`."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise _not_text(where, error.start) from None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text from `read_text`."""
    return text.removesuffix("\n").split("\n") if text else []


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a large file without line ends; UserError: a byte, counted from 0, is not UTF-8, or as `raw_lines`."""
    position = len(MARK) if _is_marked(path) else 0
    for line in raw_lines(path):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise _not_text(str(path), position + error.start) from None
        position += len(line)


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a large file, line ends included, without a byte order mark. UserError: they all end in CR alone."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if not number and len(line) == size and b"\r" in line.rstrip(b"\r\n"):
                raise UserError(f"{path} ends its lines with CR alone; convert its line ends to LF.")
            yield line if number else line.removeprefix(MARK)


def _is_marked(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _not_text(where: str, byte: int) -> UserError:
    return UserError(f"{where} is not UTF-8 text (byte {byte:,}); convert it to UTF-8.")
