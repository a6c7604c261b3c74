"""The machine's noise floor: measured once per machine by comparing one case with itself, and cached."""

import json
import math
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.measure import jobs
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Variant
from steelyard.results import record
from steelyard.statistics.calibration import UNCALIBRATED, NoiseFloor, calibrate

# Pairs of processes. Nine give the prior of every decision eight degrees of freedom.
ROUNDS = 9


def noise_floor(session: Session) -> NoiseFloor:
    """Return this machine's noise floor: the cached one, or one measured now by comparing a case with itself."""
    floor = known_floor(record.read(session.folder).machine)
    if floor is None and _is_needed(session):
        session.screen.stage("Calibration: one framework against itself")
        floor = _measure(session)
    floor = floor or UNCALIBRATED
    record.update(session.folder, noise=floor.to_dict())
    return floor


def known_floor(machine: str) -> NoiseFloor | None:
    """Return the cached noise floor of a machine; None if there is none or the file is damaged."""
    try:
        return NoiseFloor.from_dict(json.loads(_path(machine).read_text(encoding="utf-8"))["noise"])
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None


def _is_needed(session: Session) -> bool:
    plan = session.plan
    return plan.options.calibrate and plan.protocol.sequential and any(len(group.variants) > 1 for group in plan.groups)


def _measure(session: Session) -> NoiseFloor | None:
    variant = _cheapest(session)
    ratios: list[float] = []
    for number in range(1, ROUNDS + 1):
        session.screen.progress(f"{variant.title} on {variant.group}, pair {number} of {ROUNDS}", number - 1, ROUNDS)
        pair = [_one(session, variant, number, side) for side in (0, 1)]
        if pair[0] is None or pair[1] is None:
            session.screen.say("The calibration failed; an assumed noise floor is used instead.")
            return None
        ratios.append(math.log(pair[0] / pair[1]))
    floor = calibrate(ratios)
    _store(record.read(session.folder).machine, noise=floor.to_dict(), log_ratios=ratios, variant=variant.key)
    session.screen.say(f"Noise floor of this machine: {floor.s_d0:.2%} from round to round.")
    return floor


def _one(session: Session, variant: Variant, number: int, side: int) -> float | None:
    folder = session.folder / "calibration" / f"r{number:02d}.{side}"
    job = jobs.measuring(session.plan, variant, session.inputs_of(variant.case), number + 1, side, folder)
    trial = session.run_aside(jobs.cached_only(job))
    return trial.location_ns("cached") if trial.done else None


def _cheapest(session: Session) -> Variant:
    """Return the variant whose steps need the fewest FLOPs, because eighteen processes must be run."""
    flops = {group.name: group.training_flops for group in session.plan.groups}
    return min(session.plan.variants, key=lambda variant: flops[variant.group] * variant.case.batch)


def _store(machine: str, **values: Any) -> None:
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, json.dumps(values, indent=1))


def _path(machine: str) -> Path:
    return cache_folder() / "machines" / f"{machine}.json"
