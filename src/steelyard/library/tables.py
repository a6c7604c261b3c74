"""A table of results for programs, notebooks and pandas."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from steelyard.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table(Sequence[dict[str, Any]]):
    """Rows with the same names. A notebook shows `shown`, the texts with their units, under the verdict `sentences`.

    `rows`: numbers in the units that `unit` columns name. `shown`: (heading, texts of all rows) pairs; empty: the rows as they
    are.
    """

    rows: list[dict[str, Any]]
    sentences: tuple[str, ...] = ()
    shown: list[tuple[str, list[str]]] = field(default_factory=list)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Return a row, or several."""
        return self.rows[place]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows."""
        return iter(self.rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0]) if self.rows else []

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame. UserError: pandas is not installed."""
        try:
            frame = importlib.import_module("pandas").DataFrame
        except ImportError:
            raise UserError("to_pandas() needs pandas. Install it with: pip install pandas") from None
        return frame(self.rows, columns=self.names)

    def __repr__(self) -> str:
        """Return the verdicts and the table as text."""
        columns = self._columns()
        widths = [max(map(len, [heading, *texts])) for heading, texts in columns]
        lines = [[heading for heading, _ in columns], *zip(*(texts for _, texts in columns), strict=True)]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*self.sentences, *text])

    def _repr_html_(self) -> str:
        """Return the verdicts and the table as HTML, which notebooks show. Everything in it is escaped."""
        columns = self._columns()
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading, _ in columns)
        lines = zip(*(texts for _, texts in columns), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
        verdicts = "".join(f"<p><strong>{html.escape(sentence)}</strong></p>" for sentence in self.sentences)
        return f"{verdicts}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> list[tuple[str, list[str]]]:
        return self.shown or [(name, [str(row[name]) for row in self.rows]) for name in self.names]
