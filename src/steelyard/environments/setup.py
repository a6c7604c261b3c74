"""Environments for a plan: created in parallel, or given by the user; those that fail leave the plan with a reason."""

import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from steelyard import environments as made
from steelyard.catalog import frameworks
from steelyard.console import Screen
from steelyard.environments import Environment, EnvironmentName, Failure
from steelyard.errors import UserError
from steelyard.plan.run_plan import RunPlan


def environments(plan: RunPlan, screen: Screen) -> tuple[dict[str, Environment], dict[str, str]]:
    """Return ready environments by name, and a reason for each that could not be made."""
    screen.stage("Environments")
    cases = [variant.case for variant in plan.variants]
    names = dict.fromkeys(EnvironmentName(case.framework, case.version) for case in cases)
    found = make(names, cases[0].settings.device, plan.options.external, screen)
    unavailable = {name: each.sentence for name, each in found.items() if isinstance(each, Failure)}
    ready = {name: each for name, each in found.items() if isinstance(each, Environment)}
    if not ready:
        raise UserError("No environment could be created: " + " ".join(unavailable.values()))
    return ready, unavailable


def make(
    names: Iterable[EnvironmentName], device: str, external: dict[str, str], screen: Screen
) -> dict[str, Environment | Failure]:
    """Create, reuse or inspect the environments of these names, in parallel; returns them by `framework@version`.

    `external`: the interpreters of the user's own, by the same names.
    """
    found: dict[str, Environment | Failure] = {}
    wanted = []
    for name in names:
        known = frameworks.framework(name.framework)
        if known.scripted:
            found[str(name)] = _own_interpreter(name)
        elif str(name) in external:
            found[str(name)] = made.external_environment(name, Path(external[str(name)]))
        elif not made.versions_of(name.framework):
            sentence = (
                f"{known.title} has no lock file. Name an interpreter that holds it with --env {name}=/path/to/python."
            )
            found[str(name)] = Failure(str(name), sentence)
        else:
            wanted.append(name)
    found |= made.ensure_all(made.plan_environments(wanted, device), made.shown_on(screen))
    for each in found.values():
        if isinstance(each, Failure):
            screen.say(each.sentence)
    return found


def _own_interpreter(name: EnvironmentName) -> Environment:
    """Return this interpreter, in which a scripted framework runs."""
    numpy = version("numpy")
    python = ".".join(map(str, sys.version_info[:3]))
    return Environment(str(name), name.framework, numpy, Path(sys.executable), python, {"numpy": numpy})


def facts(environment: Environment) -> dict[str, Any]:
    """Return what run.json holds of an environment."""
    return {
        "version": environment.version,
        "python": str(environment.python),
        "python_version": environment.python_version,
        "packages": environment.packages,
        "external": environment.external,
    }
