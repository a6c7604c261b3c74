"""One sentence for every kind of file that cannot be read, or must not be."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.errors import UserError

# What to do about a file: of an official one with a published checksum, and of the user's own.
DOWNLOAD = "download it again"
REPLACE = "replace it, or remove it"


class MissingData(UserError):
    """A file of a layout is not there; the message is completed by how to see the layout."""


@contextmanager
def refusing(sentence: str, *kinds: type[Exception], remedy: str = REPLACE) -> Iterator[None]:
    """Turn exceptions of these kinds into a UserError: the sentence, the exception's text, and what to do.

    Errors of the system, such as a full disk, are passed on: they have other causes than the content of a file.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error).rstrip(".")
        raise UserError(f"{sentence} ({reason}); {remedy}.") from error


def check_regular(path: Path, most_bytes: int = 0) -> os.stat_result:
    """Return the status of a file that is about to be opened. UserError: it is no regular file, or larger than `most_bytes`.

    Opening a pipe waits for somebody who writes to it, and a device may have no end.
    """
    try:
        status = path.stat()
    except OSError as error:  # such as a link to a file that is gone
        raise UserError(f"{path} cannot be read ({error.strerror}); put the file there.") from None
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{path} is a folder, a pipe or a device where a file is expected; put the file there.")
    if most_bytes and status.st_size > most_bytes:
        raise too_large(str(path), status.st_size, most_bytes)
    return status


def too_large(where: str, found_bytes: int, most_bytes: int) -> UserError:
    """Return the error for a file or a member of an archive that would fill the memory."""
    return UserError(
        f"{where} has {found_bytes:,} bytes; no official file of this kind has more than {most_bytes:,}. Replace it, or "
        "remove it."
    )
