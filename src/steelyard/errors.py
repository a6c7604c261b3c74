"""Errors that the user can fix, and notices of what was repaired without the user."""

import sys
from collections.abc import Mapping
from typing import TypeVar

Found = TypeVar("Found")


class UserError(Exception):
    """An error that the user can fix. Its text says what is wrong, where, and what to do.

    The command line prints the text without a traceback and exits with `exit_code`.
    """

    exit_code = 2


class ResumableError(UserError):
    """An error of a run that can be continued once it is fixed; its text names the command."""


def notice(sentence: str) -> None:
    """Print one sentence about an unexpected state that the program handles by itself."""
    print(f"steelyard: {sentence}", file=sys.stderr)


def nearest(word: str, known: list[str]) -> str:
    """Return ` Did you mean 'x'?` with the closest known word; if none is close, a list of all known words."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f" Did you mean '{close[0]}'?"
    return f" Known: {', '.join(sorted(known))}." if known else ""


def named(known: Mapping[str, Found], name: str, unknown: str) -> Found:
    """Return known[name]. UserError: the sentence `unknown`, and the nearest known name."""
    if name not in known:
        raise UserError(f"{unknown}{nearest(name, list(known))}")
    return known[name]
