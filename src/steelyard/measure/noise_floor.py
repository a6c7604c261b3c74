"""The machine's noise floor and its arithmetic peak: measured once per machine, kept, and shown with every result."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.files.paths import cache_folder
from steelyard.measure import jobs
from steelyard.results import record
from steelyard.statistics.calibration import UNCALIBRATED, NoiseFloor, calibrate

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.measure.session import Session
    from steelyard.plan.cells import Cell

ROUNDS = 9
"""A/A rounds: eight degrees of freedom for the prior of every decision."""


def noise_floor(session: Session) -> NoiseFloor:
    """Return this machine's noise floor; measured now by comparing one cell with itself, unless it is known."""
    floor = known_floor(record.read(session.folder).machine)
    if floor is None and _worth_it(session):
        session.screen.stage("Calibration: one framework against itself")
        floor = _measure(session)
    floor = floor or UNCALIBRATED
    record.update(session.folder, noise=floor.to_dict())
    return floor


def known_floor(machine: str) -> NoiseFloor | None:
    """Return the stored floor of a machine; None when there is none or it is damaged."""
    try:
        return NoiseFloor.from_dict(json.loads(_path(machine).read_text(encoding="utf-8"))["noise"])
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None


def _worth_it(session: Session) -> bool:
    plan = session.plan
    return plan.options.calibrate and plan.protocol.sequential and any(len(cells) > 1 for cells in plan.groups.values())


def _measure(session: Session) -> NoiseFloor | None:
    cell = _cheapest(session)
    ratios: list[float] = []
    for number in range(1, ROUNDS + 1):
        session.screen.progress(f"{cell.title} on {cell.group}, pair {number} of {ROUNDS}", number - 1, ROUNDS)
        pair = [_one(session, cell, number, arm) for arm in (0, 1)]
        if pair[0] is None or pair[1] is None:
            session.screen.say("The calibration could not be finished; an assumed noise floor is used instead.")
            return None
        ratios.append(math.log(pair[0] / pair[1]))
    floor = calibrate(ratios)
    _keep(record.read(session.folder).machine, noise=floor.to_dict(), log_ratios=ratios, cell=cell.key)
    session.screen.say(f"Noise floor of this machine: {floor.s_d0:.2%} from round to round.")
    return floor


def _one(session: Session, cell: Cell, number: int, arm: int) -> float | None:
    folder = session.folder / "calibration" / f"r{number:02d}.{arm}"
    inputs = session.inputs[cell.group]
    job = jobs.measuring(session.plan, cell, inputs, number + 1, arm, folder)
    trial = session.run_aside(cell.environment, jobs.cached_only(job))
    return trial.location_ns("cached") if trial.done else None


def _cheapest(session: Session) -> Cell:
    """Return the cell whose steps cost the fewest FLOPs, of a maintained framework: eighteen processes must start."""

    def cost(cell: Cell) -> int:
        workload, preset = session.plan.preset(cell.group)
        return workload.network(preset).training_flops * int(preset.sizes["batch"])

    return min(session.plan.cells, key=cost)


def _keep(machine: str, **values: Any) -> None:
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")


def _path(machine: str) -> Path:
    return cache_folder() / "machines" / f"{machine}.json"
