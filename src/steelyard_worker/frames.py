"""Where an error happened in the files of a framework of the user's own."""

from __future__ import annotations

import traceback
from pathlib import Path


def place_in(error: BaseException, folder: str) -> str:
    """Return the last frame of an error in a folder, such as ` (adapter.py, line 31, in step)`; empty if there is none."""
    if not folder:
        return ""
    root = Path(folder).resolve()
    own = [
        each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).resolve().is_relative_to(root)
    ]
    if not own:
        return ""
    return f" ({Path(own[-1].filename).resolve().relative_to(root)}, line {own[-1].lineno}, in {own[-1].name})"
