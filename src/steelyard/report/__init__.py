"""View -> page, terminal or JSON. Nothing here measures, and nothing that measures renders."""

from pathlib import Path

from steelyard.analysis.model import View
from steelyard.errors import UserError
from steelyard.files import atomic, within
from steelyard.results import record
from steelyard.results.quantities import STEP_TIME, Quantity


def write(found: View, output: Path | None = None) -> Path:
    """Write the page of a run; returns its path. A page ranked by another quantity than time has its own name."""
    from steelyard.report import page

    path, text = output or found.folder / page_name(found.quantity), page.render(found)
    if output is None:
        within.check_file(path)
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path


def page_name(quantity: Quantity) -> str:
    """Return the name of a page in its run's folder: `report.html`, or `report-peak-memory.html`."""
    kind = "" if quantity is STEP_TIME else f"-{quantity.name.replace(' ', '-')}"
    return record.PAGE.replace(".", f"{kind}.")
