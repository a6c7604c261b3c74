"""A table of digits, 784 pixel values and the label per line -> records of one label byte and the pixels."""

import io
import zlib
from itertools import islice
from typing import Any, TextIO

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import unpacked
from steelyard.inputs.data.damage import refusing
from steelyard.inputs.data.raw_samples import ImageSplit, RawSamples, Spool
from steelyard.inputs.data.work import Work

LINES_PER_BLOCK = 1000


def read_digits(work: Work[Any]) -> RawSamples[ImageSplit]:
    """Return the digits in the order of the table, which is sorted by label. There is no official test split."""
    source = work.source
    columns = 1 + int(np.prod(source.data.shape))
    what = f"{source.path} is not a table of {columns} columns of values from 0 to 255"
    with (
        refusing(what, OSError, EOFError, ValueError, zlib.error, remedy=source.layout.remedy),
        Spool(work.scratch / "records.u8", np.uint8) as spool,
    ):
        with unpacked(source) as stream, io.TextIOWrapper(stream, encoding="ascii") as file:
            while (block := _read_lines(file, columns)) is not None:
                spool.append(np.roll(block, 1, axis=1))  # the label is the last column
        records = spool.finish().reshape(-1, columns)
    if not len(records):
        raise UserError(f"{source.path} holds no digits; {source.layout.remedy}.")
    if records[:, 0].max() >= source.data.classes:
        raise UserError(f"{source.path} has label {records[:, 0].max()}; labels are 0 to {source.data.classes - 1}.")
    split = ImageSplit(records, np.arange(len(records)))
    return RawSamples(split, None, verified=source.verified, is_sorted=True)


def _read_lines(file: TextIO, columns: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]] | None:
    lines = list(islice(filter(str.strip, file), LINES_PER_BLOCK))
    if not lines:
        return None
    block = np.loadtxt(lines, dtype=np.uint8, delimiter=",", comments=None, ndmin=2)
    if block.shape[1] != columns:
        message = f"a line has {block.shape[1]} columns"
        raise ValueError(message)
    return block
