"""Data sets: read an official layout once and write memory-mapped arrays that every framework reads.

`prepare(DataRequest(...))` is the entry point; `list_data()` and `find(name)` return the known data sets.
"""

from typing import TYPE_CHECKING

from steelyard.inputs.data.catalogue import DataSet, find, list_data, training_samples
from steelyard.inputs.data.inventory import sentences
from steelyard.inputs.data.request import DataRequest, OwnCode, Prepared, Progress, Report, silent

if TYPE_CHECKING:
    from steelyard.inputs.data.work import Known
    from steelyard_worker.network import Input

__all__ = [
    "DataRequest",
    "DataSet",
    "OwnCode",
    "Prepared",
    "Progress",
    "check",
    "find",
    "inspect",
    "list_data",
    "prepare",
    "samples",
    "sentences",
    "silent",
    "training_samples",
]


def check(request: DataRequest) -> None:
    """Check the options of a request and that its folder holds the data, without reading it; UserError if it does not."""
    from steelyard.inputs.data import preparation

    preparation.check(request)


def samples(request: DataRequest) -> "tuple[Input, ...]":
    """Return the arrays that each sample of a data set has, by its options; empty if only the data itself shows them.

    UserError: the options are wrong.
    """
    from steelyard.inputs.data import preparation

    return preparation.samples(request)


def inspect(request: DataRequest, most: int) -> "tuple[list[str], Known]":
    """Describe what is left out or changed of the data in a folder, after opening at most `most` files of each split.

    Nothing is written. UserError names all files that cannot be used, of those that were opened.
    """
    from steelyard.inputs.data import preparation

    return preparation.inspect(request, most)


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays of a data set. The first call writes them; later calls reuse them.

    `report` receives one sentence for every source tried, and the progress of long work. UserError names the file that
    is missing, damaged or in the wrong format.
    """
    from steelyard.inputs.data import preparation  # imports NumPy, which `list_data` does not need

    return preparation.prepare(request, report)
