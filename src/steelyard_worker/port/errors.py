"""What goes wrong in a user's file, as one sentence with its line."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What frameworks in C++ add to their messages.
OWN_STACK = re.compile(r" -{8,}| Stack trace:")


class SideError(Exception):
    """A side cannot answer; the text is one sentence."""


def sentence(doing: str, error: BaseException, path: Path) -> str:
    """Return what failed, and where in the user's file: `model() failed in line 12: ValueError: no such file`."""
    message = OWN_STACK.split(" ".join(str(error).split()))[0]
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({error.code!r})"
    else:
        text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    lines = [
        number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
    ]
    where = f" in line {lines[-1]}" if lines else ""
    return f"{doing} failed{where}: {text.rstrip('.')}."
