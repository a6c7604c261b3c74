"""Environments for a plan: made in parallel, or brought by the user; those that fail leave the plan with a reason."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard import environments as made
from steelyard import frameworks, host, record
from steelyard.errors import UserError

if TYPE_CHECKING:
    from steelyard.environments import Environment
    from steelyard.materials import Materials
    from steelyard.plan import RunPlan
    from steelyard.screen import Screen

ACCELERATORS = {"cpu": "cpu", "cuda": "cuda", "ascend": "ascend"}


def environments(plan: RunPlan, folder: Path, screen: Screen) -> tuple[dict[str, Environment], RunPlan]:
    """Return ready environments by name, and the plan without the cells of those that could not be made."""
    screen.stage("Environments")
    ready = {name: made.bring(name, Path(python)) for name, python in plan.options.brought.items()}
    names = [name for name in plan.environments if name not in ready]
    scripted = [name for name in names if frameworks.framework(name.partition("@")[0]).scripted]
    ready |= {name: made.own_interpreter(name) for name in scripted}
    real = [name for name in names if name not in scripted]
    with made.watch_progress(screen) as report:
        results = made.ensure_all(made.plan_environments(real, ACCELERATORS[plan.options.device]), report)
    failed = {name: found.sentence for name, found in results.items() if isinstance(found, made.Failure)}
    for sentence in failed.values():
        screen.say(sentence)
    ready |= {name: found for name, found in results.items() if isinstance(found, made.Environment)}
    if failed:
        plan = plan.without(failed)
    if not plan.cells:
        raise UserError("No environment could be made: " + " ".join(failed.values()))
    return ready, plan


def note(folder: Path, plan: RunPlan, ready: dict[str, Environment], shared: dict[str, Materials]) -> None:
    """Write machine, environments, data and gaps into run.json."""
    machine = host.describe()
    record.update(
        folder,
        machine=machine.fingerprint(),
        host=asdict(machine),
        environments={
            name: {"version": e.version, "python": str(e.python), "python_version": e.python_version, "packages": e.packages, "brought": e.brought}
            for name, e in ready.items()
        },
        materials={group: {"origin": m.origin, "identity": m.identity, "meta": m.meta} for group, m in shared.items()},
        gaps=tuple(asdict(gap) for gap in plan.gaps),
    )
