"""Addresses of shared stores, and which parts of them may be shown.

A password can be anywhere in an address: before a second `@`, after a `/` that should have been written `%2F`, in a parameter
under several names, or in a text that is no address at all. So an address is shown only if the driver reads its host and its
database in the same places as this module; then only these two are shown. All other addresses are hidden completely.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from steelyard.errors import UserError

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")
OPTION = "--store"
HIDDEN = "postgresql://***"
FORM = "postgresql://HOST/DATABASE"
PASSWORDS = (
    "Passwords belong into ~/.pgpass, a service file or PGPASSWORD; in an address, characters such as / @ ? and blanks are "
    "written %2F %40 %3F %20."
)
NOT_SHOWN = "What was given is not shown, because it may hold a password."
# One user with a password at most, which ends at the only `@`; hosts with ports; a database; parameters without an `@`.
ADDRESS = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^@/?]*)@)?"
    r"(?P<hosts>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::[0-9]+)?(?:,(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?)*)"
    r"(?:/(?P<database>[A-Za-z0-9._-]*))?(?:\?[^@]*)?"
)
# What somebody may have meant as an address. Those of clusters (`--on ray://HOST:PORT`) hold no password.
MEANT = re.compile(r"postgres(?:ql)?\s*['\"]*:|passw(?:or)?d\s*=|(?<!ray)://", re.IGNORECASE)
# Words of libpq and of the server, which may be repeated from a message that contains a secret.
PHRASES = (
    "password authentication failed",
    "no password supplied",
    "Connection refused",
    "could not translate host name",
    "No such file or directory",
    "timeout expired",
    "Connection timed out",
    "server does not support SSL",
    "does not exist",
    "server closed the connection unexpectedly",
    "permission denied",
    "no pg_hba.conf entry",
)
# A shorter word of a secret counts only where it stands alone.
LONG = 4
# Parameters that locate a store; the values of all others may be secret.
OPEN = {"host", "hostaddr", "port", "dbname"}


def is_url(text: str) -> bool:
    """Report whether a text names a shared store, and not a folder."""
    return text.startswith(SCHEMES)


def is_meant(text: str) -> bool:
    """Report whether a text may be meant as an address, even a wrong one, and may contain a password."""
    return MEANT.search(unquote(text)) is not None


def check(text: str) -> None:
    """Raise UserError if a text is no address, or if the library that reads it is missing. Opens no connection."""
    if not is_url(text):
        raise UserError(f"{OPTION} must be an address such as {FORM}. {NOT_SHOWN}")
    try:
        import psycopg  # noqa: F401 - whether it is there
    except ImportError:
        raise UserError(f"{OPTION} needs the package psycopg: pip install 'steelyard[postgres]'") from None
    if _parsed(text) is None:
        raise UserError(f"{OPTION} is not an address that PostgreSQL can read, such as {FORM}. {NOT_SHOWN} {PASSWORDS}")


def shown(text: str) -> str:
    """Return an address without its user, password and parameters; `postgresql://***` where they cannot be told from the rest."""
    found, parsed = ADDRESS.fullmatch(text), _parsed(text)
    if not found or parsed is None:
        return HIDDEN
    database = found["database"] or ""
    hosts = [re.sub(r":[0-9]+$", "", each).strip("[]") for each in found["hosts"].split(",")] if found["hosts"] else []
    same = (not database or database == parsed.get("dbname")) and (
        not any(hosts) or ",".join(hosts) == parsed.get("host")
    )
    return f"{found['scheme']}{found['hosts']}{'/' + database if database else ''}" if same else HIDDEN


def reason(error: "psycopg.Error", text: str) -> str:
    """Return the driver's message about a store, without anything that may be a password.

    The driver names hosts and databases, and the server users. Where an address is hidden, these may be parts of a password.
    """
    lines = str(error).strip().splitlines()
    if lines and shown(text) != HIDDEN and not any(_is_in(lines[0], each) for each in _secrets(text)):
        return lines[0].rstrip(".")
    known = next((each for each in PHRASES if each in str(error)), "")
    state = f", SQLSTATE {error.sqlstate}" if error.sqlstate else ""
    return f"{known or type(error).__name__}{state}; the server's own words are not shown, because they may hold a password"


def _is_in(line: str, secret: str) -> bool:
    """Report whether a text holds a secret, or a word of it."""
    words = {secret, *re.findall(r"\w+", secret)}
    return any(
        word in line if len(word) >= LONG else re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line) for word in words
    )


def without_addresses(words: Iterable[str]) -> list[str]:
    """Return the words of a command with every address as it may be shown."""
    return list(_without_addresses(list(words)))


def command(text: str) -> str:
    """Return a recorded command with its addresses hidden, because older versions recorded more of an address."""
    try:
        return shlex.join(without_addresses(shlex.split(text)))
    except ValueError:
        return HIDDEN if is_meant(text) else text


def hidden_in(message: str, words: Iterable[str]) -> str:
    """Return a message without the words of a command that may be an address."""
    words = list(words)
    for word, plain in zip(words, without_addresses(words), strict=True):
        if word != plain:
            typed = word.partition("=")[2] if word.startswith("-") and "=" in word else word
            # As it was typed, in quotes, and as the path of a folder.
            for form in filter(None, (repr(typed)[1:-1], typed, str(PurePosixPath(typed)))):
                message = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", shown(typed), message)
    return message


def _without_addresses(words: list[str]) -> Iterator[str]:
    before, broken = "", 0
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if broken:
            broken -= 1
            yield HIDDEN
        elif equals and (option == OPTION or (option.startswith("--") and is_meant(value))):
            yield f"{option}={shown(value)}"
            broken = _continued(words[place + 1 :])
        elif before == OPTION or is_meant(word):
            yield shown(word)
            broken = _continued(words[place + 1 :])
        else:
            yield word
        before = word


def _continued(words: list[str]) -> int:
    """Return how many words after an address belong to it: a shell splits a password at unquoted blanks."""
    following = list(takewhile(lambda word: not word.startswith("-"), words))
    return max((place for place, word in enumerate(following, 1) if "@" in word), default=0)


def _parsed(text: str) -> dict[str, str] | None:
    """Return the parameters of an address as the driver reads them; None if it cannot, or is not installed."""
    try:
        from psycopg import Error, conninfo
    except ImportError:
        return None
    try:
        return {name: str(value) for name, value in conninfo.conninfo_to_dict(text).items() if value is not None}
    except (Error, ValueError):  # also bytes that are no UTF-8
        return None


def _secrets(text: str) -> set[str]:
    """Return the values of an address that are not shown, as they were typed and as the driver reads them."""
    found = ADDRESS.fullmatch(text)
    typed = re.split("[:]", found["user"], maxsplit=1) if found and found["user"] else []
    parsed = _parsed(text) or {}
    return {each for each in (*typed, *(parsed[name] for name in parsed.keys() - OPEN)) if each}
