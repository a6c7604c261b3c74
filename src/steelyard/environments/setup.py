"""Environments for a plan: created in parallel, or given by the user; those that fail leave the plan with a reason."""

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from steelyard import environments as made
from steelyard.catalog import frameworks
from steelyard.console import Screen
from steelyard.environments import Environment, EnvironmentName, Failure
from steelyard.environments.interpreter import IMPORT_LIMIT_S
from steelyard.environments.pending import Arriving, Made, start
from steelyard.plan.run_plan import RunPlan
from steelyard_worker import variables


def begin(plan: RunPlan, screen: Screen) -> Arriving:
    """Start to create or verify the environments of a plan; whoever looks one up waits for it."""
    screen.stage("Environments")
    cases = [variant.case for variant in plan.variants]
    names = dict.fromkeys(map(EnvironmentName.parse, plan.environments))
    _say_ignored(names, screen)
    limit_s = min(plan.options.silence_s, IMPORT_LIMIT_S)
    return make(names, cases[0].settings.device, plan.options.external, screen, limit_s)


def make(
    names: Iterable[EnvironmentName],
    device: str,
    external: dict[str, str],
    screen: Screen,
    limit_s: float = IMPORT_LIMIT_S,
) -> Arriving:
    """Start to create, reuse or inspect the environments of these names, in parallel; they arrive by `framework@version`.

    `external`: the interpreters of the user's own, by the same names. `limit_s`: how long the import of a framework may take.
    """
    work: dict[str, Callable[[], Made]] = {}
    report = made.shown_on(screen)
    for name in names:
        known = frameworks.framework(name.framework)
        if known.scripted:
            work[str(name)] = partial(_own_interpreter, name)
        elif str(name) in external:
            work[str(name)] = partial(made.external_environment, name, Path(external[str(name)]), report, limit_s)
        elif not made.versions_of(name.framework):
            sentence = (
                f"{known.title} has no lock file. Name an interpreter that holds it with --env {name}=/path/to/python."
            )
            work[str(name)] = partial(Failure, str(name), sentence)
        else:
            (planned,) = made.plan_environments([name], device).values()
            work[str(name)] = partial(made.ensured, str(name), planned, report, limit_s)
    return start({name: partial(_said, each, screen) for name, each in work.items()})


def _said(make: Callable[[], Made], screen: Screen) -> Made:
    """Show why an environment could not be made, as soon as that is known."""
    found = make()
    if isinstance(found, Failure):
        screen.say(found.sentence)
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
