"""The formats in which results are exported. Nothing is imported here but the standard library, so that `--help` is fast."""

from collections.abc import Iterable
from typing import NamedTuple


class Format(NamedTuple):
    """A format. `module`: the file of this room that writes it; `ending`: that of its file, empty where it writes a folder.

    A module of a text has `text(view)`, of another file `content(view)`, of a folder `write(view, folder)`. `is_store`: whether a
    folder or the address of a store is written to; its module has `write_to(view, address)`, too.
    """

    about: str
    module: str
    ending: str = ""
    is_text: bool = False
    is_store: bool = False


FORMATS = {
    "csv": Format("the tidy table, one row for each process, input and quantity", "csv_table", ".csv", is_text=True),
    "parquet": Format("the tidy table with types, for pandas, Polars and DuckDB", "parquet", ".parquet"),
    "md": Format("the verdict tables as Markdown", "markdown", ".md", is_text=True),
    "latex": Format("the verdict tables for a paper (booktabs)", "latex", ".tex", is_text=True),
    "json": Format("what `steelyard report --json` prints", "result_json", ".json", is_text=True),
    "hud": Format("benchmark records of the dashboard HUD (oss_ci_benchmark_v3)", "hud", ".json", is_text=True),
    "svg": Format("every plot of the page for a paper, as SVG", "svg_plots"),
    "pdf": Format("every plot of the page for a paper, as PDF", "pdf_plots"),
    "tensorboard": Format("event files of TensorBoard", "tensorboard_log"),
    "mlflow": Format("a store of MLflow, with a run for each contender", "mlflow_log", is_store=True),
}


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence lists them: `csv, md or json`."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
