"""A port as a run: both sides are checked, and become the contenders of a plan."""

from __future__ import annotations

import ast
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.ports import check, contenders, definition, interpreters, proof
from steelyard_worker.port.side_functions import STEP

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.console import Screen
    from steelyard.plan.options import Options
    from steelyard.results.port_record import PortRecord


@dataclass(frozen=True)
class Prepared:
    """What a run of a port starts with. `record`: of the check; None: it was not asked for, so there will be no verdict."""

    options: Options
    record: PortRecord | None


def prepared(folder: Path, asked: Options, screen: Screen) -> Prepared:
    """Check both sides, and return the options of a run that times them: their steps, or forward passes if one has no step().

    UserError: the models are not the same, a side fails, or an option chooses what the port says.
    """
    port = definition.read(folder)
    contenders.check_nothing_else(asked)
    with closing(screen):
        pythons = interpreters.of(port, screen)
        record = None
        if asked.certify:
            screen.stage("Port check")
            record = check.check(port, pythons, screen.say, asked.silence_s)
            proof.require(record)
    trains = all(STEP in _functions(side.path(port.folder)) for side in port.sides)
    return Prepared(contenders.options_of(port, asked, pythons, trains), record)


def _functions(path: Path) -> set[str]:
    """Return the names that a Python file defines or imports at its top level; what fails to parse has none."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return set()  # the side's process says what is wrong
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            found.add(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in statement.names}
        elif isinstance(statement, ast.Assign):
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found
