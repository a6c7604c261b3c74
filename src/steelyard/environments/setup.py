"""Environments for a plan: created in parallel, or given by the user; those that fail leave the plan with a reason."""

from __future__ import annotations

import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard import environments as made
from steelyard import host
from steelyard.catalog import frameworks
from steelyard.environments.progress import described
from steelyard.errors import UserError
from steelyard.results import record

if TYPE_CHECKING:
    from steelyard.console import Screen
    from steelyard.environments import Environment, Failure
    from steelyard.inputs.group_inputs import GroupInputs
    from steelyard.plan.resolve import RunPlan

ACCELERATORS = {"cpu": "cpu", "cuda": "cuda", "ascend": "ascend"}


def environments(plan: RunPlan, screen: Screen) -> tuple[dict[str, Environment], RunPlan]:
    """Return ready environments by name, and the plan without the cells of those that could not be created."""
    screen.stage("Environments")
    found = make(plan.environments, plan.options.device, plan.options.external, screen)
    failed = {name: each.sentence for name, each in found.items() if isinstance(each, made.Failure)}
    ready = {name: each for name, each in found.items() if isinstance(each, made.Environment)}
    if failed:
        plan = plan.without(failed)
    if not plan.cells:
        raise UserError("No environment could be created: " + " ".join(failed.values()))
    return ready, plan


def make(names: list[str], device: str, external: dict[str, str], screen: Screen) -> dict[str, Environment | Failure]:
    """Create, reuse or inspect the environments of these names, in parallel."""
    found: dict[str, Environment | Failure] = {}
    for name in external.keys() & set(names):
        found[name] = made.external_environment(name, Path(external[name]))
    scripted = [name for name in names if frameworks.framework(name.partition("@")[0]).scripted]
    found |= {name: _own_interpreter(name) for name in scripted}
    wanted = made.plan_environments([name for name in names if name not in found], ACCELERATORS[device])

    def report(event: made.Progress) -> None:
        screen.progress(event.name, event.done_bytes, event.total_bytes, described(event))

    found |= made.ensure_all(wanted, report)
    for each in found.values():
        if isinstance(each, made.Failure):
            screen.say(each.sentence)
    return found


def _own_interpreter(name: str) -> Environment:
    """Return this interpreter, in which a scripted framework runs."""
    numpy = version("numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    framework = name.partition("@")[0]
    return made.Environment(name, framework, numpy, "", Path(sys.executable), python, {"numpy": numpy}, external=True)


def note(folder: Path, plan: RunPlan, ready: dict[str, Environment], shared: dict[str, GroupInputs]) -> None:
    """Write machine, environments, data and gaps into run.json."""
    machine = host.describe()
    record.update(
        folder,
        machine=machine.fingerprint(),
        host=asdict(machine),
        environments={
            name: {
                "version": e.version,
                "python": str(e.python),
                "python_version": e.python_version,
                "packages": e.packages,
                "external": e.external,
            }
            for name, e in ready.items()
        },
        inputs={group: {"origin": m.origin, "identity": m.identity, "meta": m.meta} for group, m in shared.items()},
        gaps=tuple(asdict(gap) for gap in plan.gaps),
    )
