"""What a program gives to `run` or `certify` as keywords, read as the command line reads its arguments."""

import argparse
from collections.abc import Mapping
from typing import Any, NoReturn

from steelyard.cli.arguments.kinds import Argument
from steelyard.cli.arguments.table import GROUPS
from steelyard.cli.parser import Parser, parser


class _Asked(Parser):
    """A parser for programs: an error is raised, not printed."""

    def error(self, message: str) -> NoReturn:
        from steelyard.errors import UserError

        raise UserError(f"{message[:1].upper()}{message[1:].removesuffix('.')}.")


def read(command: str, options: Mapping[str, Any]) -> tuple[list[str], argparse.Namespace]:
    """Return the arguments that a program gives to `run` or `certify`, as text and as the command line would read them.

    `options`: {field of `Options`: its value}; a single value stands for a list of one. UserError: there is no such option, or it
    cannot have this value.
    """
    from steelyard.errors import UserError, nearest

    known = _by_field(command)
    argv = [command]
    for name, value in options.items():
        if name not in known:
            raise UserError(f"{command}() has no option '{name}'.{nearest(name, list(known))}")
        argv += _words(known[name], value)
    return argv, parser(argv, _Asked).parse_args(argv)


def _by_field(command: str) -> dict[str, Argument]:
    """Return the arguments of a command by the field that they set; a further one for the same field by its own name."""
    known: dict[str, Argument] = {}
    for argument in (argument for group in GROUPS[command].values() for argument in group):
        names, more = argument
        own = names[-1].removeprefix("--").replace("-", "_")
        field = str(more.get("dest", own))
        known[own if field in known else field] = argument
    return known


def _words(argument: Argument, value: Any) -> list[str]:
    """Return an argument with its value as the words of a command line; none where the value is the default."""
    (*_, name), more = argument
    action = more.get("action", "store")
    if action in ("store_true", "store_false"):
        return [name] if value is (action == "store_true") else []
    if isinstance(value, Mapping):
        value = [f"{key}={each}" for key, each in value.items()]
    values = [str(each) for each in (value if isinstance(value, list | tuple) else [value])]
    if not name.startswith("-"):
        return values
    return [word for each in values for word in (name, each)] if action == "append" else [name, ",".join(values)]
