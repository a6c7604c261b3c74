"""Data sets: official layout -> prepared, memory-mapped arrays, identical for every framework.

`prepare(DataRequest(...))` is the way in; `list_data()` says what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.inputs.data.catalogue import DataSet, list_data
from steelyard.inputs.data.request import DataRequest, Prepared, Progress, silent

if TYPE_CHECKING:
    from steelyard.inputs.data.request import Report

__all__ = ["DataRequest", "DataSet", "Prepared", "Progress", "list_data", "prepare", "silent"]


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays of a data set, made on the first call and found again after.

    `report` is told every source tried, in one sentence each, and how far long work has come. UserError names
    the file that is missing, damaged or not what it should be.
    """
    from steelyard.inputs.data.preparation import prepare as prepare_arrays

    return prepare_arrays(request, report)
