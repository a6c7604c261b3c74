"""The tidy table as Parquet."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from steelyard.exports import extras, tidy_columns
from steelyard.exports.tidy_columns import COLUMNS, NUMBER, WHOLE, YES_NO

if TYPE_CHECKING:
    from steelyard.analysis.model import View


def content(view: View) -> bytes:
    """Return the table as a Parquet file. UserError: pyarrow is not installed."""
    arrow = extras.needed("pyarrow", "pyarrow", "export", "The format parquet")
    parquet = extras.needed("pyarrow.parquet", "pyarrow", "export", "The format parquet")
    found = tidy_columns.rows(view)
    table = arrow.Table.from_pylist(found, schema=_schema(arrow, tidy_columns.names(found)))
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def _schema(arrow: Any, names: list[str]) -> Any:
    types = {WHOLE: arrow.int64(), NUMBER: arrow.float64(), YES_NO: arrow.bool_()}
    kinds = {name: COLUMNS[name].kind if name in COLUMNS else "" for name in names}
    return arrow.schema([arrow.field(name, types.get(kind, arrow.string())) for name, kind in kinds.items()])
