"""The page docs/reference/commands.md, written from the tables that the parser is built from.

`python -m steelyard.cli.command_page FILE` writes it anew.
"""

import re
import sys
from pathlib import Path
from typing import Any

from steelyard.cli.arguments.kinds import Argument
from steelyard.cli.arguments.selecting import SELECTION
from steelyard.cli.arguments.table import GROUPS
from steelyard.cli.descriptions import COMMANDS, DESCRIPTIONS, EXIT_CODES

INTRODUCTION = """\
# Commands

`pip install .` installs the command `steelyard`. `steelyard COMMAND --help` prints what this page says: both come from the same
tables (`make tables`). With `--json`, every command prints its result for scripts. All [exit codes](exit-codes.md) follow one
rule.
"""
EXIT_RULE = "The exit code follows [the rule for results](exit-codes.md)."
OF_RUN = "What to compare: the same arguments as those of [`steelyard run`](#steelyard-run)."
# The title of a block of examples or of a list, and its indented lines.
BLOCK = re.compile(r"\n*^(\w[\w ]*):\n((?:  .*\n?)+)", re.MULTILINE)


def markdown() -> str:
    """Return the whole page: a table of all commands, then a section for each."""
    rows = [f"| [`steelyard {name}`](#steelyard-{name}) | {line} |" for name, line in COMMANDS.items()]
    overview = "\n".join(["| command | what it does |", "|---|---|", *rows])
    return "\n".join([INTRODUCTION, overview, "", *(_section(name) for name in COMMANDS)])


def _section(command: str) -> str:
    description = DESCRIPTIONS[command].replace(EXIT_CODES, f"\n\n{EXIT_RULE}\n\n")
    text = re.sub(r"\n{3,}", "\n\n", BLOCK.sub(_fenced, _with_quoted_options(description)))
    parts = [f"## `steelyard {command}`", text.strip()]
    for title, arguments in GROUPS[command].items():
        parts.append(OF_RUN if arguments is SELECTION and command != "run" else _table(title, arguments))
    return "\n\n".join(parts) + "\n"


def _with_quoted_options(text: str) -> str:
    """Put options into code quotes, except in indented lines, so that no renderer joins their two hyphens into a dash."""
    option = re.compile(r"(?<![\w`-])--[a-z][a-z-]*(?![`\w])")
    lines = text.split("\n")
    return "\n".join(line if line.startswith("  ") else option.sub(r"`\g<0>`", line) for line in lines)


def _fenced(block: re.Match[str]) -> str:
    lines = "\n".join(line.removeprefix("  ") for line in block[2].rstrip().split("\n"))
    return f"\n\n{block[1].capitalize()}:\n\n```\n{lines}\n```\n\n"


def _table(title: str, arguments: list[Argument]) -> str:
    rows = [f"| {_names(names, more)} | {_meaning(more)} |" for names, more in arguments]
    heading = f"{title[:1].upper()}{title[1:]}:\n\n" if title else ""
    return "\n".join([f"{heading}| argument | meaning |", "|---|---|", *rows])


def _meaning(more: dict[str, Any]) -> str:
    return _cell(_with_quoted_options(more["help"] % {}))


def _names(names: list[str], more: dict[str, Any]) -> str:
    """Return the argument as it is typed, such as `-f`, `--framework NAME[@VERSION]`."""
    value = more.get("metavar") or "|".join(more.get("choices") or ())
    if not names[0].startswith("-"):
        return _code(value or names[0])
    takes_value = not more.get("action", "store").startswith("store_")
    shown = value or names[-1].lstrip("-").upper()
    return ", ".join([*map(_code, names[:-1]), _code(f"{names[-1]} {shown}" if takes_value else names[-1])])


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def update(path: Path) -> bool:
    """Write the page to a file; return whether its text was another one."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(markdown(), encoding="utf-8")
    return text != markdown()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
