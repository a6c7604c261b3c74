"""The contract between a workload's folder and steelyard: its version, and the names that older versions used.

A spec.toml states the version for which the folder was written (`contract`). It is raised by a change after which a folder that
was right no longer is; the new names are added to `RENAMED`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.files import settings_files
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 2
KEY = "contract"
# Version -> (class in `steelyard_worker.network`, old name, new name) of what it renamed.
RENAMED = {2: (("Parameter", "idle", "zero_gradient"), ("Network", "answers", "predictions"))}
# How Python says that an argument or attribute is unknown.
UNKNOWN = re.compile(r"(?:argument|attribute) '(\w+)'")


def check(path: Path, contract: int) -> None:
    """Check the version that a spec.toml states; 0: it states none. UserError: this steelyard does not know it."""
    if not 0 <= contract <= VERSION:
        sentence = (
            f"{KEY} = {contract} is not known: this steelyard has the contracts 1 to {VERSION} of workloads. Install the "
            "steelyard that the workload was written for, or a later one."
        )
        raise settings_files.wrong(path, KEY, "", sentence)


def renamed(message: str, contract: int) -> str:
    """Return a sentence on what was renamed since a contract, if an error of network.py comes of an old name; otherwise empty.

    `contract`: the version that the folder states; 0: none, so the error may come of any old name.
    """
    since = [(version, each) for version, names in RENAMED.items() if version > contract for each in names]
    if not set(UNKNOWN.findall(message)) & {old for _, (_, old, _) in since}:
        return ""
    changes = [f"'{old}' of a {kind} is called '{new}' since contract {version}" for version, (kind, old, new) in since]
    return (
        f" It was written for an older contract of workloads: {listed(changes)}. Rename them, and write {KEY} = {VERSION} into "
        "spec.toml."
    )
