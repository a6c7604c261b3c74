"""How arguments of commands are written down, in tables that make the parser and the documentation."""

from typing import Any

# The names of an argument, and its other parameters for argparse.
Argument = tuple[list[str], dict[str, Any]]


def value(names: str, metavar: str | None, text: str, **more: Any) -> Argument:
    """Return an argument with one value. `names`: separated by blanks; without a hyphen, it is given by its place."""
    return names.split(), {"metavar": metavar, "help": text, **more}


def several(names: str, metavar: str, text: str, **more: Any) -> Argument:
    """Return an argument that may be repeated; all its values count."""
    return value(names, metavar, text, action="append", **more)


def flag(name: str, text: str, action: str = "store_true", **more: Any) -> Argument:
    """Return an argument without a value."""
    return [name], {"action": action, "help": text, **more}
