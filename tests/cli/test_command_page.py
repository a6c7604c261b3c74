"""The page of all commands: it is what the parser's tables give, and names every command and every argument."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from steelyard.cli import command_page
from steelyard.cli.arguments import keeping, measuring, preparing, showing
from steelyard.cli.arguments.table import GROUPS
from steelyard.cli.descriptions import COMMANDS, DESCRIPTIONS
from steelyard.cli.parser import parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "commands.md"


def section(command: str) -> str:
    return command_page.markdown().partition(f"\n## `steelyard {command}`\n")[2].partition("\n## ")[0]


def options_of_the_parser(command: str) -> set[str]:
    (commands,) = (each for each in parser([command])._actions if isinstance(each, argparse._SubParsersAction))
    return {name for action in commands.choices[command]._actions for name in action.option_strings} - {"-h", "--help"}


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    copy = tmp_path / "commands.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert not command_page.update(copy), "write it anew with: make tables"


def test_an_outdated_page_is_written_anew(tmp_path: Path) -> None:
    copy = tmp_path / "commands.md"
    copy.write_text("old", encoding="utf-8")
    assert command_page.update(copy)
    assert copy.read_text(encoding="utf-8") == command_page.markdown()
    assert command_page.update(tmp_path / "new.md")


def test_every_command_has_a_summary_a_description_and_arguments() -> None:
    assert COMMANDS.keys() == DESCRIPTIONS.keys() == GROUPS.keys()
    written = [name for table in (keeping, measuring, preparing, showing) for name in table.GROUPS]
    assert sorted(written) == sorted(COMMANDS), "a command stands in no table of arguments, in two, or has no summary"


def test_the_parser_lists_the_commands_in_the_order_of_help() -> None:
    (commands,) = (each for each in parser([])._actions if isinstance(each, argparse._SubParsersAction))
    assert list(commands.choices) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_parser_is_in_its_section(command: str) -> None:
    text = section(command)
    if command_page.OF_RUN in text:
        text += section("run").partition("How to measure:")[0]
    assert set(re.findall(r"`(--?[a-z][a-z-]*)[ `]", text)) >= options_of_the_parser(command)


def test_strategies_over_several_nodes_are_called_experimental_wherever_they_are_offered() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    offering = {path.name for path, text in pages.items() if "2nodes" in text}
    named = {path.name for path, text in pages.items() if re.search(r"2nodes[^\n]*\bexperimental\b", text)}
    assert offering >= {"cluster.md", "commands.md"}
    assert named == offering


def test_examples_are_code_and_percent_signs_are_single() -> None:
    assert "Examples:\n\n```\nsteelyard run     " in section("run")
    assert "Goals:\n\n```\nspeed   " in section("advise")
    assert "such as 5% |" in section("history")


def test_the_table_of_commands_stands_on_no_other_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    rows = {page.name: len(re.findall(r"^\| \[?`steelyard ", page.read_text(encoding="utf-8"), re.M)) for page in pages}
    assert {name for name, number in rows.items() if number > 2} == {PAGE.name}
