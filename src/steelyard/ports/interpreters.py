"""The interpreter of each side: the managed environment of its framework, or one of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from steelyard import environments
from steelyard.environments import setup
from steelyard.environments.external import checked_path
from steelyard.environments.spec import EnvironmentName
from steelyard.errors import UserError
from steelyard.ports import requirements

if TYPE_CHECKING:
    from steelyard.console import Screen
    from steelyard.ports.definition import Port


def of(port: Port, screen: Screen) -> dict[str, Path]:
    """Return {side: interpreter}; managed environments are made where they are missing. UserError: one cannot be had."""
    managed = dict.fromkeys(side.framework for side in port.sides if not side.env)
    screen.stage("Environments")
    arriving = setup.make(map(EnvironmentName, managed), "cpu", {}, screen)
    made = arriving.results()
    found = {}
    for side in port.sides:
        if side.env:
            path = Path(side.env).expanduser()
            found[side.name] = checked_path(side.name, path if path.is_absolute() else port.folder / path)
            continue
        environment = made[side.framework]
        if isinstance(environment, environments.Failure):
            raise UserError(environment.sentence)
        found[side.name] = (
            requirements.python_of(side, environment, screen.say) if side.requirements else environment.python
        )
    return found
