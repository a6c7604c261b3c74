"""The common objects of the readers and writers of all data sets: the source, the options, the folders, counts, and progress."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from steelyard.files import atomic
from steelyard.inputs.data.inventory import Inventory
from steelyard.inputs.data.layouts import UNKNOWN
from steelyard.inputs.data.options import Options
from steelyard.inputs.data.request import OwnCode, Progress, Report
from steelyard.inputs.data.source import Source
from steelyard_worker.network import Input
from steelyard_worker.tensors import Writer

METHOD = 1  # part of the cache key; increase it when a change alters a prepared value
# Of the data of each reader without a known checksum; increase it when a change alters what is read from such data alone.
READINGS = {
    "arrays": 1,
    "chapters": 2,
    "cifar": 2,
    "clips": 2,
    "code": 1,
    "digits": 2,
    "folders": 2,
    "pairs": 2,
    "ranks": 2,
    "review_table": 2,
    "reviews": 2,
    "running": 1,
    "wikipedia": 2,
    "wikitext": 2,
}

AnyOptions = TypeVar("AnyOptions", bound=Options)
Item = TypeVar("Item")


def reading_of(source: Source) -> tuple[int, ...]:
    """Return what the cache key has of the reader: nothing for content that a checksum has shown to be known."""
    return (READINGS[source.data.reader],) if source.verified == UNKNOWN else ()


class Known(NamedTuple):
    """The facts that are known of data before it is prepared: samples of each split, and classes. 0: not known."""

    train: int = 0
    test: int = 0
    classes: int = 0


@dataclass(frozen=True)
class Work(Generic[AnyOptions]):
    """The preparation of one data set: arrays are written to `folder`, temporary files to `scratch`.

    `inventory` counts what the reader leaves out or changes. `most`: of each split, only so many files or lines are opened, to
    check them before anything is prepared; 0: all. `inputs`, `code`: see `DataRequest`.
    """

    source: Source
    options: AnyOptions
    folder: Path
    scratch: Path
    report: Report
    inventory: Inventory = field(default_factory=Inventory)
    most: int = 0
    inputs: tuple[Input, ...] = ()
    code: OwnCode | None = None

    def say(self, sentence: str, done: int = 0, total: int = 0) -> None:
        """Report progress, see `Progress`."""
        self.report(Progress(sentence, done, total))

    def sample(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items, or `most` of them at even distances, with the first and the last."""
        if not self.most or len(items) <= self.most:
            return items
        return [items[place * (len(items) - 1) // max(self.most - 1, 1)] for place in range(self.most)]

    def writer(self, facts: Mapping[str, Any]) -> AbstractContextManager[Writer]:
        """Return the writer of the arrays. Their metadata describe the source, and hold these facts of the reader."""
        data_set = self.source.data
        described = {
            "data": data_set.name,
            "title": data_set.title,
            "terms": data_set.terms,
            "layout": self.source.layout.name,
            "origin": self.source.origin,
            "content": self.source.identity,
            "verified": self.source.verified,
            "classes": data_set.classes,
            "options": asdict(self.options),
            "method": METHOD,
        }
        # The inventory is written when the writer is closed, so it may count until then.
        return atomic.tensors_writer(self.folder, {**described, **facts, **self.inventory.facts})
