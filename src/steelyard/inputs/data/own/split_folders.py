"""The folders `train` and `test`, in which a user's own files may be the splits of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.inputs.data.layouts import Layout

SPLITS = ("train", "test")


def has_splits(layout: Layout) -> bool:
    """Return whether the files of a layout lie in the folders of the splits."""
    return any(part.path.startswith(f"{split}/") for part in layout.parts for split in SPLITS)


def by_split(path: Path, names: Sequence[str], kind: str) -> dict[str, list[Path]]:
    """Return split -> its files. `names`: relative to `path`. UserError: a folder holds no file of the `kind`, such as ".txt"."""
    files = {split: [path / name for name in names if name.startswith(f"{split}/")] for split in SPLITS}
    for split, held in files.items():
        if not held:
            raise UserError(
                f"{path / split} holds no {kind} file, which would be the {split} split; put some there, or remove the folders "
                f"'{SPLITS[0]}' and '{SPLITS[1]}'."
            )
    return files
