"""CIFAR-10 in its three forms -> records of one label byte and 3,072 pixel bytes, checked batch by batch.

Binary version: those records; python version: a pickle per batch; sheets: a PNG per batch, one image a line.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import read_members
from steelyard.inputs.data.pickles import load_pickle
from steelyard.inputs.data.png import decode_rgb
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.tables import ImageSplit, Spool, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.source import Source

    Records = np.ndarray[Any, np.dtype[np.uint8]]

LABELS = re.compile(r"(^|/)(train|test)_lables\.json$")  # the mirror's own spelling
BATCH_RECORDS = 10_000


def read_cifar(source: Source, scratch: Path, report: Report) -> Table[ImageSplit]:
    """Return the training batches in order and the test batch; a batch of fewer records makes a subset.

    UserError names a file whose size, labels or (at full size) SHA-1 is not the official one.
    """
    size = 1 + int(np.prod(source.data.shape))
    spans: dict[str, range] = {}
    agreed = set()
    with Spool(scratch / "records.u8", np.uint8) as spool:
        for batch, where, records in _batches(source):
            start = spool.count // size
            spans[batch] = range(start, start + len(records))
            if _check(source, batch, where, records):
                agreed.add(batch)
            spool.append(records)
            report(Progress(f"Reading {source.data.name}", len(spans), len(source.data.batches)))
        spooled = spool.finish().reshape(-1, size)
    splits = _divide(source, spans)
    whole = agreed == set(source.data.batches)
    if source.origin == "mirror" and not whole:
        raise UserError(f"The mirror {source.path} is not CIFAR-10's six official batches, so it is not used.")
    train, test = (ImageSplit(spooled, rows) for rows in splits.values())
    return Table(train, test, "official" if whole else source.verified, is_sorted=False)


def _divide(source: Source, spans: dict[str, range]) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the spooled rows of both splits in official order, however the batches arrived."""
    rows = {batch: np.array(spans.get(batch, ()), np.int64) for batch in source.data.batches}
    *training, test = rows.values()
    splits = {"training": np.concatenate(training), "test": test}
    for name, each in splits.items():
        if not each.size:
            raise UserError(f"{source.path} holds no {name} images; a 'data_batch' and the 'test_batch' are needed.")
    return splits


def _batches(source: Source) -> Iterator[tuple[str, str, Records]]:
    labels = _sheet_labels(source) if source.layout.name == "sheets" else {}
    for name, content in read_members(source.path, re.compile(source.data.files)):
        batch, where = PurePosixPath(name).stem, f"{source.path}: {name}"
        if name.endswith(".bin"):
            yield batch, where, _from_binary(content, where)
        elif name.endswith(".png"):
            yield batch, where, _from_sheet(content, labels.get(batch, []), where)
        else:
            yield batch, where, _from_pickle(content, where)


def _check(source: Source, batch: str, where: str, records: Records) -> bool:
    """Return whether a batch is the official one, to the bit."""
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
            f"{source.data.batches[batch]}: it was damaged or changed; fetch it again."
        )
    return False


def _from_binary(content: bytes, where: str) -> Records:
    if not content or len(content) % 3073:
        raise UserError(f"{where} has {len(content):,} bytes, not a whole number of records of 3,073 bytes.")
    return np.frombuffer(content, np.uint8).reshape(-1, 3073)


def _from_pickle(content: bytes, where: str) -> Records:
    batch = load_pickle(content, where)
    try:
        labels, pixels = np.asarray(batch[b"labels"]), np.asarray(batch[b"data"])
        if pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3072):
            message = f"data is {pixels.dtype} {pixels.shape} with {len(labels)} labels"
            raise ValueError(message)
        return _join(labels, pixels)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where} is not a batch of the python version ({error}).") from error


def _from_sheet(content: bytes, labels: list[int], where: str) -> Records:
    pixels = decode_rgb(content, where)
    if pixels.shape[1] != 1024 or len(labels) != len(pixels):
        raise UserError(f"{where} is {pixels.shape} with {len(labels)} labels, not one image of 1,024 pixels a line.")
    return _join(np.asarray(labels), pixels.transpose(0, 2, 1).reshape(len(pixels), 3072))


def _join(labels: np.ndarray[Any, Any], pixels: Records) -> Records:
    if labels.size and (labels.min() < 0 or labels.max() > 255):
        message = f"a label is {labels.min()} or {labels.max()}"
        raise ValueError(message)
    return np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1)


def _sheet_labels(source: Source) -> dict[str, list[int]]:
    """Return the labels of each batch out of the mirror's two lists."""
    lists = {PurePosixPath(name).stem: json.loads(content) for name, content in read_members(source.path, LABELS)}
    train, test = lists.get("train_lables", []), lists.get("test_lables", [])
    pieces = {
        f"data_batch_{n + 1}": train[n * BATCH_RECORDS : (n + 1) * BATCH_RECORDS]
        for n in range(len(train) // BATCH_RECORDS)
    }
    return {**pieces, "test_batch": test}
