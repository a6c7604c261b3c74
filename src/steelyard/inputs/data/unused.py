"""Count by reason the files that lie in the folder of a data set and are not read."""

import re
from pathlib import Path

from steelyard.inputs.data.archives import OTHER, walk
from steelyard.inputs.data.inventory import Inventory
from steelyard.inputs.data.layouts import pattern_of
from steelyard.inputs.data.recordings import METADATA, audio_folder
from steelyard.inputs.data.source import Source

CASE = "files whose names differ from the layout in small and capital letters"
ALTERNATIVES = "files that fit the layout as well as the first by name, which is used"


def count_unused(source: Source, inventory: Inventory) -> None:
    """Count what a folder holds beside the files that its reader takes, and beside a vocabulary that is used."""
    wanted = _files_of(source)
    for name, of_any_reader in walk(source.path):
        if (reason := of_any_reader or _reason(name, wanted)) and source.path / name != source.companion:
            inventory.leave_out(reason, name)


def count_alternatives(source: Source, requested: Path, inventory: Inventory) -> None:
    """Count the files beside a single file that could have been meant as well, where the user named their folder."""
    if requested.is_dir():
        for path in sorted(requested.glob(pattern_of(source.layout.path))):
            if path != source.path:
                inventory.leave_out(ALTERNATIVES, path.name)


def _files_of(source: Source) -> re.Pattern[str]:
    """Return the pattern of the files of a folder that its reader takes."""
    if source.data.form in ("pairs", "language") and source.data.reader != "wikipedia":
        return re.compile("|".join(rf"^{re.escape(part.path)}$" for part in source.layout.parts))
    if source.data.reader == "clips":
        folder, suffix = audio_folder(source.path)
        return re.compile(rf"^{re.escape(METADATA)}$|^{folder.name}/[^/]+{re.escape(suffix)}$")
    if source.data.form in ("arrays", "running"):
        return source.layout.files
    return re.compile(source.data.files)


def _reason(name: str, wanted: re.Pattern[str]) -> str:
    if wanted.search(name):
        return ""
    return CASE if re.search(wanted.pattern, name, re.IGNORECASE) else OTHER
