"""Record -> view -> page or table. Nothing here measures, and nothing that measures renders."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.measure import rounds
from steelyard.plan import resolve as plans
from steelyard.report import model
from steelyard.results import record
from steelyard.statistics.calibration import UNCALIBRATED, NoiseFloor

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.plan.resolve import RunPlan
    from steelyard.report.model import View
    from steelyard.results.store import Store


def view(folder: Path, store: Store) -> View:
    """Build what is to be shown of a run."""
    from steelyard.measure.session import ROUNDS
    from steelyard.report import warnings

    known = record.read(folder)
    book = rounds.read_book(store.trials(folder.name))
    planned = _planned(known)
    material = model.Material(
        plan=planned, record=known, book=book, noise=_noise(known), certificates=read_certificates(folder),
        decision=planned.protocol.decision(planned.options.delta),
    )  # fmt: skip
    comparisons = tuple(model.compare(material, group) for group in planned.groups)
    disturbances = tuple(_json_lines(folder / ROUNDS))
    found = warnings.find(comparisons, disturbances, material)
    return model.View(folder.name, folder, known, material.noise, comparisons, disturbances, found)


def write(found: View, output: Path | None = None) -> Path:
    """Write the page of a run; returns its path."""
    from steelyard.report import page

    path, text = output or found.folder / record.PAGE, page.render(found)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path


def read_certificates(folder: Path) -> dict[str, Any]:
    """Return the certificates of a run by cell key; none where certification was left out."""
    path = folder / record.CERTIFICATES
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path} is damaged ({error}). Make it again with: steelyard run --resume {folder.name}"
        ) from None
    return found


def _planned(known: record.RunRecord) -> RunPlan:
    """Plan again what was planned then; environments that failed then are gaps now as well."""
    planned = plans.plan(known.options)
    failed = {
        name: "Its environment could not be made." for name in planned.environments if name not in known.environments
    }
    reasons = {gap["environment"]: gap["reason"] for gap in known.gaps}
    return planned.without({name: reasons.get(name, reason) for name, reason in failed.items()}) if failed else planned


def _noise(known: record.RunRecord) -> NoiseFloor:
    return NoiseFloor.from_dict(known.noise) if known.noise else UNCALIBRATED


def _json_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]  # a last line cut short by a kill has no end
    return [json.loads(line) for line in whole.splitlines()]
