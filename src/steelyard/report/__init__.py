"""Run folder -> view -> page or table. Nothing here measures, and nothing that measures renders."""

import json
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.files import atomic, json_lines
from steelyard.report import model
from steelyard.report.model import View
from steelyard.results import record, round_results
from steelyard.results.quantities import STEP_TIME, Quantity
from steelyard.results.store import Store


def view(folder: Path, store: Store, quantity: Quantity = STEP_TIME) -> View:
    """Return what is to be shown of a run, ranked by a quantity; a function of the run folder alone."""
    from steelyard.report import warnings

    known = record.read(folder)
    plan = known.available
    certificates = read_certificates(folder)
    disturbances = tuple(json_lines.read(folder / record.ROUNDS))
    source = model.Source(
        name=folder.name, plan=plan, record=known, results=round_results.collect(store.trials(folder.name), certificates),
        certificates=certificates, decision=plan.protocol.decision(plan.options.delta), quantity=quantity,
        disturbances=disturbances,
    )  # fmt: skip
    comparisons = tuple(model.compare(source, group) for group in plan.groups)
    found = warnings.find(comparisons, disturbances, source)
    return model.View(folder.name, folder, known, quantity, comparisons, disturbances, found)


def write(found: View, output: Path | None = None) -> Path:
    """Write the page of a run; returns its path. A page ranked by another quantity than time has its own name."""
    from steelyard.report import page

    path, text = output or found.folder / page_name(found.quantity), page.render(found)
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path


def page_name(quantity: Quantity) -> str:
    """Return the name of a page in its run's folder: `report.html`, or `report-peak-memory.html`."""
    kind = "" if quantity is STEP_TIME else f"-{quantity.name.replace(' ', '-')}"
    return record.PAGE.replace(".", f"{kind}.")


def read_certificates(folder: Path) -> dict[str, Any]:
    """Return the certificates of a run by case id; none where certification was left out."""
    path = folder / record.CERTIFICATES
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}). Restore it with: steelyard run --resume {folder.name}") from None
    return found
