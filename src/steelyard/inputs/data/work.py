"""What the readers and writers of all data sets work with: the source, the options, the folders, and progress."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from steelyard.files import atomic
from steelyard.inputs.data.options import Options
from steelyard.inputs.data.request import Progress, Report
from steelyard.inputs.data.source import Source
from steelyard_worker.tensors import Writer

METHOD = 1  # part of the cache key; increase it when a change alters a prepared value

AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True)
class Work(Generic[AnyOptions]):
    """The preparation of one data set: arrays are written to `folder`, temporary files to `scratch`."""

    source: Source
    options: AnyOptions
    folder: Path
    scratch: Path
    report: Report

    def say(self, sentence: str, done: int = 0, total: int = 0) -> None:
        """Report progress, see `Progress`."""
        self.report(Progress(sentence, done, total))

    def writer(self, facts: Mapping[str, Any]) -> AbstractContextManager[Writer]:
        """Return the writer of the arrays. Their metadata describe the source, and hold these facts of the reader."""
        data_set = self.source.data
        described = {
            "data": data_set.name, "title": data_set.title, "terms": data_set.terms, "layout": self.source.layout.name,
            "origin": self.source.origin, "content": self.source.identity, "verified": self.source.verified,
            "classes": data_set.classes, "options": asdict(self.options), "method": METHOD,
        }  # fmt: skip
        return atomic.tensors_writer(self.folder, {**described, **facts})
