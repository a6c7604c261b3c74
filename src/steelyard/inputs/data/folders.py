"""Images in class folders, as ImageNet has them: `train/<class>/<image>`, `val/<class>/<image>`, unpacked or in a zip archive.

Only names are read here; images are decoded when they are written.
"""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import MAX_MEMBER_BYTES
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.tables import FileSplit, Spool, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.source import Source

SPLITS = {"train": "training", "val": "validation"}
IMAGE = re.compile(r"\.(jpe?g|png)$", re.IGNORECASE)


def read_folders(source: Source, scratch: Path, report: Report) -> Table[FileSplit]:
    """Return both splits; labels are places in the sorted names of the training classes, images are sorted within theirs.

    UserError names a split without images, images outside class folders, a class that is not trained, or too many of them.
    """
    archive = _open_archive(source.path) if source.path.is_file() else None
    classes: dict[str, int] = {}
    train = _read_split(source, archive, "train", classes, scratch, report)
    if len(classes) > source.data.classes:
        raise UserError(
            f"{source.path} has {len(classes):,} training classes; {source.data.name} has {source.data.classes:,}."
        )
    val = _read_split(source, archive, "val", classes, scratch, report)
    return Table(train, val, source.verified, is_sorted=True)


def _read_split(
    source: Source, archive: zipfile.ZipFile | None, split: str, classes: dict[str, int], scratch: Path, report: Report
) -> FileSplit:  # fmt: skip
    """Spool the names of a split, the label of each, and where each name ends; the training split fills `classes`."""
    with (
        Spool(scratch / f"{split}-names.u8", np.uint8) as names,
        Spool(scratch / f"{split}-ends.i64", np.int64) as ends,
        Spool(scratch / f"{split}-labels.i32", np.int32) as labels,
    ):
        for folder, name in _archived(archive, split) if archive else _unpacked(source.path, split):
            if split == "train":
                classes.setdefault(folder, len(classes))
            elif folder not in classes:
                raise UserError(f"{source.path}: {name} is of the class '{folder}', which train/ does not have.")
            names.append(np.frombuffer(os.fsencode(name), np.uint8))
            ends.append(np.array([names.count]))
            labels.append(np.array([classes[folder]]))
            if ends.count % 10_000 == 0:
                report(Progress(f"Listing {SPLITS[split]} images, {ends.count:,} so far"))
        if not ends.count:
            raise UserError(_nothing(source.path, archive, split))
        return FileSplit(source.path, archive, names.finish(), ends.finish(), labels.finish())


def _unpacked(root: Path, split: str) -> Iterator[tuple[str, str]]:
    """Yield (class, name below the root) class by class, both sorted."""
    folder = root / split
    for each in sorted(_entries(folder)):
        if (folder / each).is_dir():
            for name in sorted(filter(IMAGE.search, _entries(folder / each))):
                yield each, f"{split}/{each}/{name}"


def _entries(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - names are all that is wanted of a million files


def _archived(archive: zipfile.ZipFile, split: str) -> Iterator[tuple[str, str]]:
    """Yield (class, name in the archive), sorted; the archive may hold everything below one folder."""
    found = []
    for name in archive.namelist():
        parts = PurePosixPath(name).parts
        if IMAGE.search(name) and parts[-3:-2] == (split,):
            found.append((parts[-2], name))
    yield from sorted(found)


def _open_archive(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{path} is damaged or cut short ({error}); fetch it again.") from error
    for member in archive.infolist():
        if member.file_size > MAX_MEMBER_BYTES:
            raise UserError(
                f"{path} holds '{member.filename}' of {member.file_size:,} bytes, larger than any image; not read."
            )
    return archive


def _nothing(path: Path, archive: zipfile.ZipFile | None, split: str) -> str:
    """Say where images belong, and that they lie flat where they do: the official validation archive is such."""
    names = archive.namelist() if archive else [f"{split}/{name}" for name in _entries(path / split)]
    stray = min(
        (name for name in names if IMAGE.search(name) and PurePosixPath(name).parts[-2:-1] == (split,)), default=""
    )
    if stray:
        return (
            f"{path}: {stray} lies in no class folder. Sort the {SPLITS[split]} images into {split}/<class>/<image>, as train/ "
            "is; which class each has is in ILSVRC2012_validation_ground_truth.txt of the official development kit."
        )
    return f"{path} holds no {SPLITS[split]} images; they belong in {split}/<class>/, such as {split}/n01440764/<image>.JPEG."
