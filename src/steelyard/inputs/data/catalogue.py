"""The known data sets, read from `catalogue.toml`: files and formats, sizes, checksums, terms, addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib

from steelyard.errors import UserError, nearest
from steelyard.inputs.data.layouts import ARCHIVES, PLACE, Layout, Part

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class DataSet:
    """The facts about one data set. `train` and `test` are sample counts; test 0 means that we split it ourselves.

    Both are 0 where only the data itself shows how many samples it has.
    """

    name: str
    title: str
    form: str  # a key of `options.OPTIONS_OF_FORM`, such as "image"
    reader: str
    classes: int  # 0: none, or only the data itself shows how many
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
    optional: tuple[tuple[str, str], ...] = ()  # files beside the data that are used if they are there: path, format

    @property
    def hint(self) -> str:
        """A sentence for messages about missing files."""
        return f"To see which files are read: steelyard list data {self.name}"

    @property
    def fetched(self) -> str:
        """Where the data comes from if the user names no folder, in words."""
        if self.package:
            return f"taken from the package {self.package['requirement']}"
        addresses = [layout.url for layout in self.layouts if layout.url]
        mirror = [f"the package {self.mirror['npm']}"] if self.mirror else []
        return f"downloaded from {' or '.join([*addresses, *mirror])}" if addresses else "not downloaded"

    @property
    def readable(self) -> tuple[Layout, ...]:
        """The layouts that a user can provide: all but that of the mirror, of which only the official files are accepted."""
        return tuple(layout for layout in self.layouts if layout.name != self.mirror.get("layout"))

    def with_splits(self, train: str, test: str) -> DataSet:
        """Return the data set with the requested splits in the places {train:...} and {test:...}."""

        def named(text: str, quote: Callable[[str], str] = str) -> str:
            return PLACE.sub(lambda place: quote(chosen[place[1]]) if place[1] in chosen else place[0], text)

        chosen = {"train": train, "test": test}
        layouts = tuple(
            replace(layout, parts=tuple(replace(part, path=named(part.path)) for part in layout.parts))
            for layout in self.layouts
        )
        return replace(self, layouts=layouts, files=named(self.files, re.escape))


def list_data() -> tuple[DataSet, ...]:
    """Return every known data set."""
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return tuple(_data_set(name, entry) for name, entry in tomllib.loads(text).items())


def training_samples() -> dict[str, int]:
    """Return data set -> official number of training samples, of those that have one."""
    return {data_set.name: data_set.train for data_set in list_data() if data_set.train}


def find(name: str) -> DataSet:
    """Return one data set; UserError suggests the nearest name."""
    data_sets = {data_set.name: data_set for data_set in list_data()}
    if name not in data_sets:
        raise UserError(f"There is no data set '{name}'.{nearest(name, list(data_sets))}")
    return data_sets[name]


def _data_set(name: str, entry: dict[str, Any]) -> DataSet:
    layouts: list[Layout] = []
    for raw in entry.pop("layouts"):
        layouts.append(_layout(raw, layouts))
    shape, optional = tuple(entry.pop("shape", ())), tuple(map(tuple, entry.pop("optional", ())))
    return DataSet(name=name, layouts=tuple(layouts), shape=shape, optional=optional, **entry)


def _layout(raw: dict[str, Any], earlier: list[Layout]) -> Layout:
    """Return a layout. One that is `like` an earlier layout has its parts; in an archive they lie below that layout's folder."""
    parts = tuple(Part(*part) for part in raw.pop("parts", ()))
    if like := raw.pop("like", ""):
        model = next(layout for layout in earlier if layout.name == like)
        above = f"{model.path}/" if raw["path"].endswith(ARCHIVES) else ""
        parts = tuple(replace(part, path=above + part.path) for part in model.parts)
    return Layout(parts=parts, **raw)
