"""Every planted bug still fits the code, also those of slow tests, which are run rarely."""

from __future__ import annotations

import ast

import pytest
from mutant_bench import Mutant
from test_held_apart import MISTAKES, RIGHT
from test_mutants import MUTANTS

from steelyard.catalog.frameworks import WORKER


@pytest.mark.parametrize(
    "mutants", [MUTANTS, MISTAKES, RIGHT], ids=["mutants", "held-apart mistakes", "right variants"]
)
def test_every_edit_of_a_mutant_finds_its_text_once_and_leaves_python(mutants: list[Mutant]) -> None:
    wrong = [problem for mutant in mutants if (problem := _problem(mutant))]
    assert wrong == []


def _problem(mutant: Mutant) -> str:
    """Return which text of a mutant the code does not have exactly once, or which file is then no Python; empty if none is."""
    files: dict[str, str] = {}
    for name, text, replacement in mutant.edits:
        source = files.get(name) or (WORKER / name).read_text(encoding="utf-8")
        if source.count(text) != 1:
            return f"{mutant.name}: {name} has {text!r} {source.count(text)} times"
        files[name] = source.replace(text, replacement)
    for name, source in files.items():
        try:
            ast.parse(source)
        except SyntaxError as error:
            return f"{mutant.name}: {name} is no Python any more: {error}"
    return ""
