"""The message for a full disk."""

import errno
from pathlib import Path

ERRORS = (errno.ENOSPC, errno.EDQUOT)


def sentence(path: str | Path) -> str:
    """Return what is wrong and what to do. `path`: of a file or folder on the disk that is full."""
    return f"The disk that holds {path} is full. Free some space, then continue with --resume."
