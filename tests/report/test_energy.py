"""Energy by meters: a section, a quantity that is ranked, and fields of JSON; nothing of it without a meter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "golden"))

import golden_archives

from steelyard import analysis
from steelyard.analysis.energy import energy
from steelyard.report import as_json
from steelyard.report.sections.energy import blocks
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.quantities import ENERGY


@pytest.fixture(scope="module")
def metered(tmp_path_factory):
    """Two meters of a package: 25 J and 2.5 J in every block."""
    root = tmp_path_factory.mktemp("metered")
    golden_archives.unpack("limits", root)
    return root / "runs" / "limits"


def blocks_of(view):
    (comparison,) = view.comparisons
    return blocks(Subject(comparison, view.comparisons, styles(view.comparisons)))


def test_the_energy_of_a_step_is_that_of_the_counted_blocks(metered):
    view = analysis.view(metered)
    (comparison,) = view.comparisons
    source, known = energy(comparison)
    assert source == comparison.primary
    for one in known:
        counted = [block for trial in one.contender.trials for block in trial.counted(source)]
        (steps,) = {block.steps for block in counted}
        assert one.per_step.value_ns == pytest.approx(27.5 / steps)
        assert one.per_sample == pytest.approx(27.5 / steps / comparison.batch)
        assert one.watts == pytest.approx(
            one.per_step.value_ns / (one.contender.speeds[source].location.value_ns / 1e9)
        )
        assert one.meters == ("package-0", "package-0 dram")
        assert one.per_epoch is None
    assert [one.per_step.value_ns for one in known] == sorted(one.per_step.value_ns for one in known)


def test_page_and_json_have_it_and_a_ranking_has_its_words(metered, recorded_view):
    view = analysis.view(metered)
    (panel,) = blocks_of(view)
    assert "package-0 and package-0 dram" in panel.blocks[0].parts[0]
    rows = as_json.as_dict(view)["comparisons"][0]["energy"]
    assert len(rows) == len(panel.blocks[1].rows)
    assert rows[0]["joules_per_step"] > 0
    (ranked,) = analysis.view(metered, ENERGY).comparisons
    assert {each.quantity.label for each in analysis.view(metered, ENERGY).comparisons} == {"energy per step"}
    assert all(contender.standings for contender in ranked.contenders)
    assert blocks_of(recorded_view) == []
    assert "energy" not in as_json.as_dict(recorded_view)["comparisons"][0]
