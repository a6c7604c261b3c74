"""One table of the arguments of all commands. Only the standard library is imported here, so that `--help` is fast."""

from steelyard.cli.arguments import keeping, measuring, preparing, showing
from steelyard.cli.arguments.kinds import Argument
from steelyard.cli.descriptions import COMMANDS

_ALL = measuring.GROUPS | showing.GROUPS | preparing.GROUPS | keeping.GROUPS

GROUPS: dict[str, dict[str, list[Argument]]] = {name: _ALL[name] for name in COMMANDS}
"""Command -> {title of a group in the help text, or "": its arguments}."""
