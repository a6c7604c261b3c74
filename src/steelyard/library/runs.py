"""A run that was measured, for programs: read from its folder, and from nothing else."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard import analysis, report
from steelyard.analysis import tidy
from steelyard.errors import UserError, nearest
from steelyard.exports import writing
from steelyard.files import paths
from steelyard.library.comparisons import Comparison, table_of
from steelyard.library.tables import Table
from steelyard.results import run_folders
from steelyard.results.quantities import STEP_TIME
from steelyard.results.quantities import quantity as quantity_named
from steelyard.wording import prices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import View
    from steelyard.analysis.notices import ResultWarning
    from steelyard.results.record import RunRecord
    from steelyard.wording.prices import Price


def load(run: str | Path = "latest", runs: str | Path | None = None) -> Run:
    """Return a run by its folder, its name, a unique beginning of its name, or "latest": the last with a finished process.

    `runs`: the folder that holds the runs (default: the one that the commands use). UserError: there is no such run, or its
    record is damaged.
    """
    root = Path(runs).expanduser().absolute() if runs else paths.runs_folder()
    return Run(run_folders.find(root, str(run)))


def _view(folder: Path, quantity: str, price: Price | None) -> View:
    return analysis.view(folder, quantity_named(quantity, price), price)


class Run:
    """A run. Everything that it returns is read from its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._view = lru_cache(maxsize=None)(partial(_view, folder))

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def record(self) -> RunRecord:
        """The contents of run.json: plan, machine, environments, options, state."""
        return self.view().record

    @property
    def comparisons(self) -> list[Comparison]:
        """All comparisons, by the time per step."""
        return [Comparison(comparison) for comparison in self.view().comparisons]

    @property
    def warnings(self) -> tuple[ResultWarning, ...]:
        """The reasons to doubt results, with advice."""
        return self.view().warnings

    def view(self, quantity: str = STEP_TIME.name, price: str = "") -> View:
        """Return everything that its page shows, ranked by a quantity such as "peak memory", with costs at a price.

        `price`: as of `--price`, such as "1.20 EUR/h" or "0.30/kWh"; the quantity "cost" needs one. UserError: it is none.
        """
        paid = prices.price(price) if price else None
        return self._view(quantity_named(quantity, paid).name, paid)

    def comparison(self, name: str, quantity: str = STEP_TIME.name, price: str = "") -> Comparison:
        """Return a comparison by the name of its group, or of its workload if only one group has that; ranked by a quantity.

        UserError: there is no such comparison, or there are several.
        """
        known = {comparison.group: comparison for comparison in self.view(quantity, price).comparisons}
        matching = [group for group in known if group == name or group.partition(":")[0] == name]
        if name in known:
            return Comparison(known[name])
        if len(matching) != 1:
            raise UserError(
                f"'{name}' could be any of {', '.join(matching)} in run {self.name}. Name one of them in full."
                if matching
                else f"Run {self.name} has no comparison '{name}'.{nearest(name, list(known))}"
            )
        return Comparison(known[matching[0]])

    def __getitem__(self, name: str) -> Comparison:
        """Return a comparison by the time per step."""
        return self.comparison(name)

    def __iter__(self) -> Iterator[Comparison]:
        """Iterate over the comparisons."""
        return iter(self.comparisons)

    def table(self, quantity: str = STEP_TIME.name, price: str = "") -> Table:
        """Return the verdict tables of all comparisons as one, ranked by a quantity; `price`: of a cost, as of `view`.

        UserError: there is no such quantity.
        """
        compared = self.view(quantity, price).comparisons
        return table_of([(comparison, source) for comparison in compared for source in comparison.rankings])

    def tidy(self) -> Table:
        """Return one row for each process, input and quantity, with all fields of its case (`docs/reference/tidy-table.md`)."""
        return Table(list(tidy.rows(self.view())))

    def export(
        self,
        format: str,  # noqa: A002 - the word of the command
        path: str | Path,
        quantity: str = STEP_TIME.name,
        price: str = "",
    ) -> list[Path]:
        """Write the results to a file or a folder, and return the paths of the files: `steelyard export` in a program.

        `format`: csv, parquet, md, latex, json, hud, svg, pdf, tensorboard or mlflow, whose path may be `sqlite:///FILE`.
        UserError: there is no such format, its library is not installed, or the path cannot be written or lies in the folder of
        the run.
        """
        return writing.export(self.view(quantity, price), format, path)

    def write_page(self, path: str | Path, quantity: str = STEP_TIME.name, price: str = "") -> Path:
        """Write the page of the run to a file and return its path. UserError: it cannot be written."""
        return report.write(self.view(quantity, price), Path(path).expanduser().absolute())

    def __repr__(self) -> str:
        """Return the name of the run and its verdicts."""
        lines = [f"{comparison.name}: {comparison.headline}" for comparison in self.comparisons]
        return "\n".join([f"Run {self.name}", *lines])

    def _repr_html_(self) -> str:
        """Return the verdict tables, which notebooks show."""
        return self.table()._repr_html_()

    def as_dict(self, price: str = "") -> dict[str, Any]:
        """Return what `steelyard report --json` prints, with costs if there is a price."""
        from steelyard.report import as_json

        return as_json.as_dict(self.view(price=price))
