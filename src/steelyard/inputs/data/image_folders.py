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
from steelyard.inputs.data.archives import EMPTY, HIDDEN, OTHER, is_hidden, walk
from steelyard.inputs.data.damage import MissingData, refusing, too_large
from steelyard.inputs.data.inventory import Inventory, refuse, shown
from steelyard.inputs.data.raw_samples import MAX_IMAGE_BYTES, FileSplit, RawSamples, Spool
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.work import Work

SPLITS = {"train": "training", "val": "validation"}
IMAGE = re.compile(r"\.(jpe?g|png)$", re.IGNORECASE)
OTHER_IMAGES = {
    ".avif",
    ".bmp",
    ".gif",
    ".heic",
    ".heif",
    ".jfif",
    ".jp2",
    ".jpe",
    ".jxl",
    ".pgm",
    ".ppm",
    ".svg",
    ".tga",
    ".tif",
    ".tiff",
    ".webp",
}
REPORT_IMAGES = 10_000
OUTSIDE = "files outside of class folders"
NESTED = "files in subfolders of class folders"
TWICE = "files that an archive holds twice"


def read_image_folders(work: Work[Any]) -> RawSamples[FileSplit]:
    """Return both splits. Labels are indices into the sorted names of the training classes; images are sorted per class.

    UserError names a split without images, images outside class folders, a class that has no training images, or too many
    classes.
    """
    source = work.source
    archive = _open_archive(source.path) if source.path.is_file() else None
    if archive:
        _count_unused(source.path, _entries_of(archive), work.inventory)
    classes: dict[str, int] = {}
    train = _read_split(work, archive, "train", classes)
    if len(classes) > source.data.classes:
        raise UserError(
            f"{source.path} has {len(classes):,} training classes; {source.data.name} has {source.data.classes:,}."
        )
    val = _read_split(work, archive, "val", classes)
    return RawSamples(train, val, source.verified, is_sorted=True)


def count_unused_images(source: Source, inventory: Inventory) -> None:
    """Count what a folder holds beside the images that are read. UserError names class folders without any image."""
    _count_unused(source.path, walk(source.path), inventory)


def _count_unused(path: Path, entries: Iterator[tuple[str, str]], inventory: Inventory) -> None:
    """Count by reason the entries (name relative to the root, reason of `walk`) that are no images of a class."""
    is_read: dict[tuple[str, ...], bool] = {}
    left_out: dict[tuple[str, ...], list[str]] = {}
    for name, of_any_reader in entries:
        parts = tuple(name.split("/"))
        reason = of_any_reader or _reason(parts)
        if parts[0] in SPLITS and len(parts) > 2 and not is_hidden(parts[1]):
            is_read[parts[:2]] = is_read.get(parts[:2], False) or not reason
            if reason and name[-1] != "/":
                left_out.setdefault(parts[:2], []).append(name)
        if reason:
            inventory.leave_out(reason, name)
    refuse(
        [
            UserError(_without_images(path, place, left_out.get(place, [])))
            for place, read in is_read.items()
            if not read
        ]
    )


def _reason(parts: tuple[str, ...]) -> str:
    """Return why a file is not read; empty if it is an image of a class."""
    if parts[0] not in SPLITS:
        return OTHER
    if len(parts) != 3:
        return OUTSIDE if len(parts) == 2 else NESTED
    if IMAGE.search(parts[-1]):
        return ""
    suffix = PurePosixPath(parts[-1]).suffix.lower()
    kind = suffix if suffix in OTHER_IMAGES else "other"
    return f"{kind} files, as only .jpg, .jpeg and .png are read"


def _without_images(path: Path, place: tuple[str, ...], names: list[str]) -> str:
    held = (
        f"{len(names):,} of its files are of other kinds or in subfolders, such as {shown(names[0])}"
        if names
        else "it is empty"
    )
    return (
        f"{path}: the class folder {shown('/'.join(place))} has no .jpg, .jpeg or .png ({held}); convert or move its images, "
        "or remove the folder."
    )


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
                raise UserError(
                    f"{root}: {shown(name)} belongs to the class '{shown(folder)}', which is missing in train/."
                )
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
    if not folder.is_dir():
        return []
    # Only the names of up to a million files are needed.
    return [name for name in os.listdir(folder) if not is_hidden(name)]  # noqa: PTH208


def _archived(archive: zipfile.ZipFile, split: str) -> Iterator[tuple[str, str]]:
    """Yield (class, name in the archive), sorted. The archive may have one more folder above `train` and `val`."""
    found = []
    for name in dict.fromkeys(archive.namelist()):
        parts = PurePosixPath(name).parts
        if IMAGE.search(name) and parts[-3:-2] == (split,) and not any(map(is_hidden, parts)):
            found.append((parts[-2], name))
    yield from sorted(found)


def _entries_of(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the names in an archive as `walk` does those in a folder, without the folder above `train` and `val`."""
    seen: set[str] = set()
    names = archive.namelist()
    holding = {parent for name in names for parent in PurePosixPath(name).parents}
    for full in names:
        parts = PurePosixPath(full).parts
        above = next((place for place, part in enumerate(parts) if part in SPLITS), 0)
        name = "/".join(parts[above:]) + ("/" if full.endswith("/") else "")
        if full in seen:
            yield name, TWICE
        elif any(map(is_hidden, parts)):
            yield name, HIDDEN
        elif not full.endswith("/"):
            yield name, ""
        elif PurePosixPath(full) not in holding:
            yield name, EMPTY
        seen.add(full)


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
