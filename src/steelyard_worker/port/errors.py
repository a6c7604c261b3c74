"""What goes wrong in a user's file, as one sentence with its line."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What frameworks in C++ add to their messages: a stack, and the names that they have for a node.
OWN_WORDS = re.compile(r"( -{8,}| Stack trace:| \[Op:\w+\] name:).*|\{\{\w+ [^}]*\}\} ")


class SideError(Exception):
    """A side cannot answer; the text is one sentence."""


def message(error: BaseException) -> str:
    """Return what an error says in one line, without the stack of a framework and a full stop."""
    return OWN_WORDS.sub("", " ".join(str(error).split())).rstrip(".")


def sentence(doing: str, error: BaseException, path: Path) -> str:
    """Return what failed, and where in the user's file: `model() failed in line 12: ValueError: no such file`."""
    said = message(error)
    if isinstance(error, SystemExit):
        text = f"it called sys.exit({error.code!r})"
    else:
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    lines = [
        number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
    ]
    where = f" in line {lines[-1]}" if lines else ""
    return f"{doing} failed{where}: {text}."
