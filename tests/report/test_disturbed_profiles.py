"""A profile that was taken beside other programs is not compared: its step is not the one that the run measured."""

from __future__ import annotations

import pytest
from recorded import Script, view_of, write_run
from recorded_profiles import write_profile

from steelyard.analysis.where_time_goes import where_time_goes

ROUNDS = 5
MEASURED_MS = {"fake": 10.0, "dummy": 12.0}
DOUBT = (
    "The profile of Dummy is not of what was measured, and is compared with no other: without the profiler a step took"
)


def section(root, factor, rounds=ROUNDS, slow_down=1.0):
    """Return the section of two contenders; that of Dummy was profiled when its steps took `factor` times as long."""
    scripts = {name: Script(ms, process_scatter=0.01, rounds=rounds) for name, ms in MEASURED_MS.items()}
    run = write_run(root, scripts)
    for name, ms in MEASURED_MS.items():
        took = ms * (factor if name == "dummy" else 1.0) * slow_down
        write_profile(run, name, product_ms=0.6 * took, update_ms=0.3 * took, gap_ms=0.1 * took, slow_down=slow_down)
    (comparison,) = view_of(run).comparisons
    return where_time_goes(comparison)


@pytest.mark.parametrize("factor", [0.5, 2.0, 15.0])
def test_a_profile_of_another_speed_is_named_and_not_compared(tmp_path, factor):
    found = section(tmp_path, factor)
    (sentence,) = found.sentences
    assert sentence.startswith(DOUBT)
    assert "in the rounds 12.0 ms" in sentence
    assert sentence.endswith("`steelyard explain --fresh` profiles again.")
    assert found.compared == []
    assert len(found.profiled) == 2, "its classes are shown all the same"


@pytest.mark.parametrize(("factor", "slow_down"), [(1.0, 1.0), (1.15, 1.0), (0.9, 1.0), (1.0, 3.0)])
def test_a_profile_of_about_that_speed_is_compared_however_much_the_profiler_costs(tmp_path, factor, slow_down):
    found = section(tmp_path, factor, slow_down=slow_down)
    (sentence,) = found.sentences
    assert sentence.startswith("A step of Dummy takes ")
    assert len(found.compared) == 1


def test_one_round_has_no_interval_to_be_far_from(tmp_path):
    (sentence,) = section(tmp_path, 15.0, rounds=1).sentences
    assert sentence.startswith("A step of Dummy takes ")
