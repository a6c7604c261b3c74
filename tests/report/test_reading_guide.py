"""The guide to a page names what a page has: its folds, its columns, its words; and the page names the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.report import page, sections
from steelyard.report.columns import ranked_by
from steelyard.report.plots import ratio_bars
from steelyard.report.sections.contender_tables import CONTENDER
from steelyard.report.terms import TERMS
from steelyard.results.quantities import STEP_TIME
from steelyard_worker.case import TRAINING

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "reading-a-page.md"


def part(heading: str) -> str:
    """Return the text of the guide below a heading."""
    return GUIDE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(heading: str) -> list[str]:
    """Return the first cell of every row of the table below a heading."""
    rows = [line for line in part(heading).splitlines() if line.startswith("| ")]
    return [row.split(" | ")[0].removeprefix("| ") for row in rows[1:]]


def test_the_page_names_the_guide(recorded_view) -> None:
    named = re.findall(r"docs/[\w-]+\.md", page.render(recorded_view))
    assert "docs/reading-a-page.md" in named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_guide_has_every_column_of_a_training_in_its_order() -> None:
    headings = [column.heading for column in ranked_by(STEP_TIME, TRAINING)]
    assert first_cells("The table") == [CONTENDER, *headings]


def test_the_guide_has_every_fold_of_a_page_in_its_order() -> None:
    folds = [section.fold.partition(":")[0] for section in sections.OF_COMPARISON if section.fold]
    assert first_cells("The folds") == list(dict.fromkeys(folds))


@pytest.mark.parametrize(
    "word", ["practically the same", "not told apart", "too close to call", "not enough rounds", "retired"]
)
def test_the_guide_explains_the_words_of_verdicts(word: str) -> None:
    assert word in TERMS
    assert [cell for cell in first_cells("The words") if cell.startswith(word)]


def test_the_guide_says_how_many_contenders_are_drawn() -> None:
    assert ratio_bars.MOST_ROWS == 8
    assert "at most eight" in part("The drawing of ratios")


def test_the_pictures_of_the_guide_exist() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", GUIDE.read_text(encoding="utf-8"))
    assert len(shown) == 2
    assert all((GUIDE.parent / name).is_file() for name in shown)
