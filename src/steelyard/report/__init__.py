"""View -> page, terminal or JSON. Nothing here measures, and nothing that measures renders."""

from pathlib import Path

from steelyard.analysis.model import View
from steelyard.errors import UserError
from steelyard.files import atomic, within
from steelyard.results import record
from steelyard.results.quantities import STEP_TIME


def write(found: View, output: Path | None = None) -> Path:
    """Write the page of a run; returns its path. A page by another quantity than time, or with a price, has its own name."""
    from steelyard.report import page

    path, text = output or found.folder / page_name(found), page.render(found)
    if output is None:
        within.check_file(path)
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path


def page_name(found: View) -> str:
    """Return the name of a page in its run's folder: `report.html`, `report-peak-memory.html`, or `report-with-price.html`."""
    quantity = found.quantity
    kind = "" if quantity is STEP_TIME else f"-{quantity.name.replace(' ', '-')}"
    kind += "-with-price" if found.price and not quantity.price else ""
    return record.PAGE.replace(".", f"{kind}.")
