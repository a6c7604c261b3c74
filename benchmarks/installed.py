"""The frameworks whose environments can be created here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from steelyard import environments
from steelyard.catalog import frameworks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def interpreters(names: list[str] | None = None) -> Iterator[tuple[str, Path]]:
    """Yield each framework with its interpreter; one without an environment is named on standard error and left out."""
    wanted = map(environments.EnvironmentName.parse, names or list(frameworks.contenders()))
    created = environments.ensure_all(environments.plan_environments(wanted, "cpu"))
    for name, environment in created.items():
        if isinstance(environment, environments.Failure):
            print(environment.sentence, file=sys.stderr)
        else:
            yield name, environment.python
