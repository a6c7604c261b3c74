"""The parser of all commands, made of the table of their arguments."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from steelyard.cli.arguments.table import GROUPS
from steelyard.cli.descriptions import ABOUT, COMMANDS, DESCRIPTIONS


class Parser(argparse.ArgumentParser):
    """A parser that hides addresses of stores in its messages, as they may contain a password. `words`: the typed arguments."""

    words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        from steelyard.results.addresses import hidden_in

        super().error(hidden_in(message, self.words))


class _Version(argparse.Action):
    """Print the version; it is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from steelyard.version import VERSION

        print(f"steelyard {VERSION}")
        parser.exit()


def parser(argv: list[str], kind: "type[Parser] | None" = None) -> argparse.ArgumentParser:
    """Return the parser. Only commands named in `argv` get their arguments, because building all of them is slow."""
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    Parser.words = argv
    top = (kind or Parser)(prog="steelyard", description=ABOUT, **layout)
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, groups in GROUPS.items():
        command = commands.add_parser(name, help=COMMANDS[name], description=DESCRIPTIONS[name], **layout)
        command.set_defaults(module=name.replace("-", "_"))
        for title, arguments in groups.items() if name in argv else ():
            group = command.add_argument_group(title) if title else command
            for names, more in arguments:
                group.add_argument(*names, **more)
    return top
