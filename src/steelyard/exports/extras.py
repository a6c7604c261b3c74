"""Libraries that only some formats need."""

import importlib
from typing import Any

from steelyard.errors import UserError


def needed(module: str, package: str, extra: str, what: str) -> Any:
    """Return an imported module. UserError: it is not installed; the sentence says for what it is needed, and how to install it.

    `package`: the package that has it; `extra`: the extra of steelyard that has the package; `what`: the format or the command.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"{what} needs the package {package}: pip install 'steelyard[{extra}]'") from None
