"""The analysis of a run: its record -> numbers, verdicts and sentences. `report` decides how they are laid out."""

from pathlib import Path

from steelyard.analysis import comparing, model, side_records
from steelyard.analysis.model import View
from steelyard.errors import UserError
from steelyard.results import record, repeated, round_results, searched, trials
from steelyard.results.quantities import STEP_TIME, Quantity
from steelyard.results.searched import Searched
from steelyard.wording.prices import Price


def view(folder: Path, quantity: Quantity = STEP_TIME, price: Price | None = None) -> View:
    """Return what a run has measured, ranked by a quantity; it depends on the run folder alone, and costs on the price.

    Trials, notes on rounds and the record of a search that are damaged are left out, with a warning. UserError: run.json or
    certificates.json is damaged.
    """
    from steelyard.analysis import published, warnings

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
        name=folder.name,
        plan=plan,
        record=known,
        results=round_results.collect(found, certificates),
        certificates=certificates,
        quantity=quantity,
        disturbances=tuple(disturbances),
        folder=folder,
        beside={variant.case.id: side_records.read(folder, variant) for variant in plan.variants},
        repeated=repeated.only_for_standstill(disturbances, found, cases),
        price=price or quantity.price,
    )
    comparisons = tuple(comparing.compare(source, each) for each in plan.groups if each.cases[0].task in quantity.tasks)
    reasons = warnings.find(comparisons, tuple(disturbances), source, [*damaged, *wrong])
    groups = {group.name for group in plan.groups}
    missing = tuple(each for each in plan.skipped if each.group not in groups)
    redone = published.tables(source, comparisons)
    return View(
        folder.name,
        folder,
        known,
        quantity,
        comparisons,
        missing,
        tuple(disturbances),
        reasons,
        redone,
        tried,
        source.repeated,
        source.price,
    )


def _searched(folder: Path, damaged: list[str]) -> Searched | None:
    """Return the settings that a search tried before the rounds. A damaged file is reported in `damaged`."""
    try:
        return searched.read(folder)
    except UserError as error:
        damaged.append(str(error))
        return None
