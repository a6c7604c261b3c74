"""Environments for a plan: created in parallel, or given by the user; those that fail leave the plan with a reason."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from steelyard import environments as made
from steelyard.catalog import frameworks
from steelyard.console import Screen
from steelyard.environments import Environment, Failure
from steelyard.environments.progress import described
from steelyard.errors import UserError
from steelyard.plan.run_plan import RunPlan

ACCELERATORS = {"cpu": "cpu", "cuda": "cuda", "ascend": "ascend"}


def environments(plan: RunPlan, screen: Screen) -> tuple[dict[str, Environment], dict[str, str]]:
    """Return ready environments by name, and a reason for each that could not be made."""
    screen.stage("Environments")
    device = plan.variants[0].case.settings.device
    found = make(plan.environments, device, plan.options.external, screen)
    unavailable = {name: each.sentence for name, each in found.items() if isinstance(each, made.Failure)}
    ready = {name: each for name, each in found.items() if isinstance(each, made.Environment)}
    if not ready:
        raise UserError("No environment could be created: " + " ".join(unavailable.values()))
    return ready, unavailable


def make(names: list[str], device: str, external: dict[str, str], screen: Screen) -> dict[str, Environment | Failure]:
    """Create, reuse or inspect the environments of these names, in parallel."""
    found: dict[str, Environment | Failure] = {}
    for name in external.keys() & set(names):
        found[name] = made.external_environment(name, Path(external[name]))
    scripted = [name for name in names if frameworks.framework(name.partition("@")[0]).scripted]
    found |= {name: _own_interpreter(name) for name in scripted}
    found |= {name: without for name in names if name not in found and (without := _without_lock(name))}
    wanted = made.plan_environments([name for name in names if name not in found], ACCELERATORS[device])

    def report(event: made.Progress) -> None:
        screen.progress(event.name, event.done_bytes, event.total_bytes, described(event))

    found |= made.ensure_all(wanted, report)
    for each in found.values():
        if isinstance(each, made.Failure):
            screen.say(each.sentence)
    return found


def _without_lock(name: str) -> Failure | None:
    """Return why there is no environment for a framework that has no lock file; None where it has one."""
    framework = name.partition("@")[0]
    if made.versions_of(framework):
        return None
    title = frameworks.framework(framework).title
    return made.Failure(
        name, f"{title} has no lock file. Name an interpreter that holds it with --env {name}=/path/to/python."
    )


def _own_interpreter(name: str) -> Environment:
    """Return this interpreter, in which a scripted framework runs."""
    numpy = version("numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    framework = name.partition("@")[0]
    return made.Environment(name, framework, numpy, "", Path(sys.executable), python, {"numpy": numpy}, external=True)


def facts(environment: Environment) -> dict[str, Any]:
    """Return what run.json holds of an environment."""
    return {
        "version": environment.version,
        "python": str(environment.python),
        "python_version": environment.python_version,
        "packages": environment.packages,
        "external": environment.external,
    }
