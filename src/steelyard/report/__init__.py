"""Run folder -> view -> page or table. Nothing here measures, and nothing that measures renders."""

from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import atomic, within
from steelyard.report import comparing, model
from steelyard.report.model import View
from steelyard.results import record, repeated, round_results, searched, trials
from steelyard.results.quantities import STEP_TIME, Quantity
from steelyard.results.searched import Searched


def view(folder: Path, quantity: Quantity = STEP_TIME) -> View:
    """Return the contents of a run's report, ranked by a quantity; they depend on the run folder alone.

    Trials, notes on rounds and the record of a search that are damaged are left out, with a warning. UserError: run.json or
    certificates.json is damaged.
    """
    from steelyard.report import published, warnings

    known = record.read(folder)
    plan = known.available
    if all(case.task not in quantity.tasks for group in plan.groups for case in group.cases):
        raise UserError(
            f"Run {folder.name} has no {quantity.name}: only runs with --task {quantity.tasks[0]} measure it."
        )
    certificates = record.read_certificates(folder)
    found, damaged = trials.read_all(folder)
    disturbances, wrong = record.read_rounds(folder)
    tried = _searched(folder, damaged)
    cases = {group.name: [case.id for case in group.cases] for group in plan.groups}
    source = model.Source(
        name=folder.name, plan=plan, record=known, results=round_results.collect(found, certificates),
        certificates=certificates, quantity=quantity,
        disturbances=tuple(disturbances), folder=folder,
        repeated=repeated.only_for_standstill(disturbances, found, cases),
    )  # fmt: skip
    comparisons = tuple(comparing.compare(source, each) for each in plan.groups if each.cases[0].task in quantity.tasks)
    reasons = warnings.find(comparisons, tuple(disturbances), source, [*damaged, *wrong])
    groups = {group.name for group in plan.groups}
    missing = tuple(each for each in plan.skipped if each.group not in groups)
    redone = published.tables(source, comparisons)
    return model.View(
        folder.name, folder, known, quantity, comparisons, missing, tuple(disturbances), reasons, redone, tried,
        source.repeated,
    )  # fmt: skip


def _searched(folder: Path, damaged: list[str]) -> Searched | None:
    """Return the settings that a search tried before the rounds. A damaged file is reported in `damaged`."""
    try:
        return searched.read(folder)
    except UserError as error:
        damaged.append(str(error))
        return None


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
