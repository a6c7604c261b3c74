"""The tidy table as CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from steelyard.exports import tidy_columns

if TYPE_CHECKING:
    from steelyard.analysis.model import View
    from steelyard.analysis.tidy import Value

# A spreadsheet runs a text that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def text(view: View) -> str:
    """Return the table with one line of headings. Fields without a value are empty, truth values are `true` and `false`."""
    found = tidy_columns.rows(view)
    file = io.StringIO()
    writer = csv.DictWriter(file, tidy_columns.names(found), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _field(value) for name, value in row.items()} for row in found)
    return file.getvalue()


def _field(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
