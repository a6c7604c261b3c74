"""How many steps a process counts, from the scatter that a run has shown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.statistics.effort import FIRST_RATIO, HIGHEST, LOWEST, Process, noise_ratios

STEPS, BLOCKS = 10, 5


def simulated(contenders, rounds, step, process, seed=1):
    """Return processes whose steps and processes scatter by these relative standard deviations."""
    random = np.random.default_rng(seed)

    def one():
        mean = 1e7 * np.exp(random.normal(0, process)) if process else 1e7
        noise = np.exp(random.normal(0, step / np.sqrt(STEPS), BLOCKS))
        return Process([(STEPS, float(mean * each)) for each in noise])

    return {f"c{name}": {number: one() for number in range(1, rounds + 1)} for name in range(contenders)}


def test_before_anything_is_known_the_first_ratio_holds():
    assert noise_ratios({}) == {}
    assert noise_ratios({"a": {1: Process([(10, 5.0)])}}) == {"a": FIRST_RATIO}
    # One round shows the scatter of steps, and nothing about processes.
    found = noise_ratios(simulated(50, 1, 0.1, 0.02))
    assert np.mean(list(found.values())) == pytest.approx(FIRST_RATIO, rel=0.1)


@pytest.mark.parametrize(("step", "process", "ratio"), [(0.10, 0.10, 1.0), (0.12, 0.04, 3.0), (0.02, 0.10, LOWEST)])
def test_the_ratio_follows_the_scatter_of_the_run(step, process, ratio):
    found = [noise_ratios(simulated(5, 12, step, process, seed)) for seed in range(20)]
    assert np.mean([value for each in found for value in each.values()]) == pytest.approx(ratio, rel=0.15)


def test_where_processes_do_not_differ_most_steps_are_counted():
    assert np.mean(list(noise_ratios(simulated(5, 12, 0.1, 0.0)).values())) > 0.8 * HIGHEST


def test_a_contender_with_noisy_steps_counts_more_of_them():
    processes = simulated(4, 6, 0.05, 0.05) | {"noisy": simulated(1, 6, 0.25, 0.05, 7)["c0"]}
    found = noise_ratios(processes)
    assert found["noisy"] > 2 * max(found[f"c{number}"] for number in range(4))


def test_a_contender_that_stopped_early_does_not_spoil_the_estimate():
    processes = simulated(4, 8, 0.1, 0.1)
    processes["c3"] = {1: processes["c3"][1]}
    assert noise_ratios(processes)["c0"] == pytest.approx(1.0, rel=0.5)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.dictionaries(
            st.integers(1, 12),
            st.lists(st.tuples(st.integers(1, 99), st.floats(1, 1e12)), min_size=1, max_size=4).map(Process),
            min_size=1,
            max_size=4,
        ),
        max_size=5,
    )
)
def test_any_record_gives_a_ratio_within_its_bounds(processes):
    found = noise_ratios(processes)
    assert found.keys() == processes.keys()
    assert all(LOWEST <= ratio <= HIGHEST for ratio in found.values())
