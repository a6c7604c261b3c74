"""A quantity can be ranked as soon as it is declared: a table needs no column that somebody wrote for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading import Page

from steelyard import analysis
from steelyard.report import columns, page
from steelyard.results.quantities import PEAK_MEMORY, QUANTITIES, in_task
from steelyard_worker.case import INFERENCE, TRAINING

NEW = replace(PEAK_MEMORY, name="memory of nothing", label="memory of nothing")


@pytest.mark.parametrize("task", [TRAINING, INFERENCE])
def test_a_quantity_without_a_column_of_its_own_gets_one(task: str) -> None:
    found = columns.own(NEW, task)
    assert (found.heading, found.quantity) == ("memory of nothing", "memory of nothing")
    assert found.help == "Memory of nothing, averaged over processes. Less is better."
    assert columns.ranked_by(NEW, task)[0].heading == "mean memory of nothing"


@pytest.mark.parametrize("task", [TRAINING, INFERENCE])
@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_has_the_first_column_of_its_ranking(name: str, task: str) -> None:
    wanted = in_task(QUANTITIES[name], task)
    first = columns.ranked_by(QUANTITIES[name], task)[0]
    assert first.heading and first.help
    assert first.quantity == wanted.name


def test_a_run_is_ranked_by_a_quantity_without_a_column(recorded_view) -> None:
    found = Page(page.render(analysis.view(recorded_view.folder, NEW)))
    assert "mean memory of nothing" in [each.words for each in found.all("th")]
