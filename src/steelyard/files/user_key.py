"""A secret key of the user's. A text that carries its mark was written by this user, and has not been altered since.

The key lies outside of the folders of runs and of the cache, which are copied, sent and emptied.
"""

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from steelyard.files import paths

FILE = "records.key"
BYTES = 32
MODE = 0o600


def mark(text: str) -> str:
    """Return the mark of a text (HMAC-SHA256, 64 hexadecimal digits); empty where no key can be kept.

    The key is made on first use.
    """
    key = _key()
    return hmac.new(key, text.encode(), "sha256").hexdigest() if key else ""


def is_marked(text: str, found: str) -> bool:
    """Report whether a mark is that of a text under the key that exists; without one, nothing is marked."""
    key = _read(_path())
    return bool(key) and hmac.compare_digest(
        hmac.new(key, text.encode(), "sha256").hexdigest().encode(), found.encode()
    )


def _path() -> Path:
    return paths.state_folder() / FILE


def _key() -> bytes:
    """Return the key, made where it is missing or where others could have read it; empty where it cannot be written."""
    path = _path()
    with suppress(OSError):
        return _read(path) or _made(path)
    return b""


def _read(path: Path) -> bytes:
    """Return the key in a file; empty unless the file belongs to this user, no other can read it, and it is whole."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            own = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
            key = file.read(BYTES + 1) if own else b""
    except OSError:
        return b""
    return key if len(key) == BYTES else b""


def _made(path: Path) -> bytes:
    """Write a new key, and return the one that is there then: of two processes at once, the first one's key counts."""
    path.parent.mkdir(paths.PRIVATE, parents=True, exist_ok=True)
    partial = path.with_name(f".{FILE}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
        try:
            os.link(partial, path)
        except FileExistsError:
            if not _read(path):
                partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return _read(path)
