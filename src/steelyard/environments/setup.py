"""Environments for a plan: created in parallel, or given by the user; those that fail leave the plan with a reason."""

import os
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from steelyard import environments as made
from steelyard.catalog import frameworks
from steelyard.console import Screen
from steelyard.environments import Environment, EnvironmentName, Failure
from steelyard.environments.interpreter import IMPORT_LIMIT_S
from steelyard.errors import UserError
from steelyard.plan.run_plan import RunPlan
from steelyard_worker import variables


def environments(plan: RunPlan, screen: Screen) -> tuple[dict[str, Environment], dict[str, str]]:
    """Return ready environments by name, and a reason for each that could not be made."""
    screen.stage("Environments")
    cases = [variant.case for variant in plan.variants]
    names = dict.fromkeys(EnvironmentName(case.framework, case.version) for case in cases)
    _say_ignored(names, screen)
    limit_s = min(plan.options.silence_s, IMPORT_LIMIT_S)
    found = make(names, cases[0].settings.device, plan.options.external, screen, limit_s)
    unavailable = {name: each.sentence for name, each in found.items() if isinstance(each, Failure)}
    ready = {name: each for name, each in found.items() if isinstance(each, Environment)}
    if not ready:
        raise UserError("No environment could be created: " + " ".join(unavailable.values()))
    return ready, unavailable


def make(
    names: Iterable[EnvironmentName], device: str, external: dict[str, str], screen: Screen,
    limit_s: float = IMPORT_LIMIT_S,
) -> dict[str, Environment | Failure]:  # fmt: skip
    """Create, reuse or inspect the environments of these names, in parallel; returns them by `framework@version`.

    `external`: the interpreters of the user's own, by the same names. `limit_s`: how long the import of a framework may take.
    """
    found: dict[str, Environment | Failure] = {}
    wanted = []
    report = made.shown_on(screen)
    for name in names:
        known = frameworks.framework(name.framework)
        if known.scripted:
            found[str(name)] = _own_interpreter(name)
        elif str(name) in external:
            found[str(name)] = made.external_environment(name, Path(external[str(name)]), report, limit_s)
        elif not made.versions_of(name.framework):
            sentence = (
                f"{known.title} has no lock file. Name an interpreter that holds it with --env {name}=/path/to/python."
            )
            found[str(name)] = Failure(str(name), sentence)
        else:
            wanted.append(name)
    found |= made.ensure_all(made.plan_environments(wanted, device), report, limit_s)
    for each in found.values():
        if isinstance(each, Failure):
            screen.say(each.sentence)
    return found


def _say_ignored(names: Iterable[EnvironmentName], screen: Screen) -> None:
    """Name the user's variables that have no effect on this run, because a setting must not come from the shell."""
    of_frameworks = [each for name in names for each in frameworks.framework(name.framework).variables]
    if ignored := variables.ignored(os.environ, of_frameworks):
        screen.say(
            f"These environment variables are not passed on to the frameworks, because they can change results or speed: "
            f"{', '.join(ignored)}."
        )


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
        "contents": environment.contents,
        "variables": variables.libraries(os.environ),
        "external": environment.external,
    }
