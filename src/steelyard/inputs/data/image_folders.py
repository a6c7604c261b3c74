"""Images in class folders, as in ImageNet: `train/<class>/<image>`, `val/<class>/<image>`, unpacked or in a zip archive.

Only the names are read here. The images are decoded when the prepared arrays are written.
"""

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import MissingData, refusing, too_large
from steelyard.inputs.data.raw_samples import MAX_IMAGE_BYTES, FileSplit, RawSamples, Spool
from steelyard.inputs.data.work import Work

SPLITS = {"train": "training", "val": "validation"}
IMAGE = re.compile(r"\.(jpe?g|png)$", re.IGNORECASE)
REPORT_IMAGES = 10_000


def read_image_folders(work: Work[Any]) -> RawSamples[FileSplit]:
    """Return both splits. Labels are indices into the sorted names of the training classes; images are sorted per class.

    UserError names a split without images, images outside class folders, a class that has no training images, or too many
    classes.
    """
    source = work.source
    archive = _open_archive(source.path) if source.path.is_file() else None
    classes: dict[str, int] = {}
    train = _read_split(work, archive, "train", classes)
    if len(classes) > source.data.classes:
        raise UserError(
            f"{source.path} has {len(classes):,} training classes; {source.data.name} has {source.data.classes:,}."
        )
    val = _read_split(work, archive, "val", classes)
    return RawSamples(train, val, source.verified, is_sorted=True)


def _read_split(work: Work[Any], archive: zipfile.ZipFile | None, split: str, classes: dict[str, int]) -> FileSplit:
    """Spool the names, labels and name ends of a split. The training split adds its classes to `classes`."""
    root = work.source.path
    with (
        Spool(work.scratch / f"{split}-names.u8", np.uint8) as names,
        Spool(work.scratch / f"{split}-ends.i64", np.int64) as ends,
        Spool(work.scratch / f"{split}-labels.i32", np.int32) as labels,
    ):
        for folder, name in _archived(archive, split) if archive else _unpacked(root, split):
            if split == "train":
                classes.setdefault(folder, len(classes))
            elif folder not in classes:
                raise UserError(f"{root}: {name} belongs to the class '{folder}', which is missing in train/.")
            names.append(np.frombuffer(os.fsencode(name), np.uint8))
            ends.append(np.array([names.count]))
            labels.append(np.array([classes[folder]]))
            if ends.count % REPORT_IMAGES == 0:
                work.say(f"Listing {SPLITS[split]} images, {ends.count:,} so far")
        if not ends.count:
            raise MissingData(_explain_missing(root, archive, split))
        return FileSplit(root, archive, names.finish(), ends.finish(), labels.finish())


def _unpacked(root: Path, split: str) -> Iterator[tuple[str, str]]:
    """Yield (class, name relative to the root) class by class, both sorted."""
    folder = root / split
    for class_name in sorted(_entries(folder)):
        if (folder / class_name).is_dir():
            for name in sorted(filter(IMAGE.search, _entries(folder / class_name))):
                yield class_name, f"{split}/{class_name}/{name}"


def _entries(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - only the names of up to a million files are needed


def _archived(archive: zipfile.ZipFile, split: str) -> Iterator[tuple[str, str]]:
    """Yield (class, name in the archive), sorted. The archive may have one more folder above `train` and `val`."""
    found = []
    for name in archive.namelist():
        parts = PurePosixPath(name).parts
        if IMAGE.search(name) and parts[-3:-2] == (split,):
            found.append((parts[-2], name))
    yield from sorted(found)


def _open_archive(path: Path) -> zipfile.ZipFile:
    with refusing(f"{path} is damaged or truncated", zipfile.BadZipFile, EOFError):
        archive = zipfile.ZipFile(path)
    for member in archive.infolist():
        if member.file_size > MAX_IMAGE_BYTES:
            raise too_large(f"{path}: {member.filename}", member.file_size, MAX_IMAGE_BYTES)
    return archive


def _explain_missing(path: Path, archive: zipfile.ZipFile | None, split: str) -> str:
    """Return where images belong. The official validation archive has no class folders, which gets its own message."""
    names = archive.namelist() if archive else [f"{split}/{name}" for name in _entries(path / split)]
    outside = min(
        (name for name in names if IMAGE.search(name) and PurePosixPath(name).parts[-2:-1] == (split,)), default=""
    )
    if outside:
        return (
            f"{path}: {outside} is not in a class folder. Sort the {SPLITS[split]} images into {split}/<class>/<image>, as in "
            "train/; ILSVRC2012_validation_ground_truth.txt of the official development kit lists the class of each image."
        )
    return (
        f"{path} holds no {SPLITS[split]} images; put them in {split}/<class>/, such as {split}/n01440764/<image>.JPEG."
    )
