"""The classes of a step add up to the step, whatever overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.profiles.breakdown import Profile, breakdown
from steelyard.profiles.waterfall import largest, waterfall

KINDS = {"conv": "convolution, forward", "both": "convolution, backward", "run": "dispatch"}


def profile(
    *events: tuple[str, int, int, int], elapsed: int = 200, waits: tuple[tuple[int, int], ...] = (), steps: int = 2
) -> Profile:
    """Return a profile of (name, thread, start, duration) events."""
    names = list(dict.fromkeys(name for name, *_ in events))
    ordered = sorted(events, key=lambda event: (event[2], -event[3]))
    columns = [
        np.array(column, np.int64)
        for column in zip(*((names.index(n), t, s, d) for n, t, s, d in ordered), strict=True)
    ]
    return Profile(
        names,
        columns[1],
        columns[0],
        columns[2],
        columns[3],
        np.array(waits, np.int64).reshape(-1, 2),
        steps,
        elapsed,
        90.0,
        (120.0, 100.0),
    )


def parts(found: Profile, **more: float) -> dict[str, float]:
    return dict(breakdown(found, lambda name: KINDS.get(name, ""), **more).classes)


def test_every_nanosecond_has_one_class() -> None:
    found = profile(("run", 1, 0, 100), ("conv", 1, 20, 60), ("strange", 1, 150, 20), waits=((100, 10), (160, 20)))
    assert parts(found) == {
        "dispatch": 20,
        "convolution, forward": 30,
        "unattributed": 10,
        "input pipeline": 5 + 5,
        "host gap": 30,
    }


def test_a_joint_backward_pass_is_divided_by_the_kernels() -> None:
    found = profile(("both", 1, 0, 200))
    assert parts(found) == {"convolution, backward": 100}
    assert parts(found, to_data=0.4) == {"convolution, backward to data": 40, "convolution, backward to weights": 60}


def test_operations_of_several_threads_share_the_time_that_they_cover() -> None:
    made = breakdown(profile(("conv", 1, 0, 100), ("run", 2, 0, 50)), lambda name: KINDS.get(name, ""))
    assert made.parallelism == pytest.approx(1.5)
    assert made.covered == 0.5
    assert dict(made.classes) == {
        "convolution, forward": pytest.approx(100 / 3),
        "dispatch": pytest.approx(50 / 3),
        "host gap": 50,
    }


def test_what_lies_outside_the_block_is_cut_off() -> None:
    assert parts(profile(("conv", 1, -50, 100), ("conv", 1, 190, 100), ("conv", 1, 300, 10))) == {
        "convolution, forward": 30,
        "host gap": 70,
    }


def test_the_cost_of_the_profiler_and_the_operations_per_step_are_told() -> None:
    made = breakdown(
        profile(("conv", 1, 0, 40), ("conv", 1, 50, 40), ("run", 1, 100, 10)), lambda name: KINDS.get(name, "")
    )
    assert (made.slow_down, made.cpu_slow_down) == (pytest.approx(100 / 90), pytest.approx(1.2))
    assert made.dispatches == 1
    assert [(each.name, each.calls, each.step_ns) for each in made.operations] == [("conv", 1, 40), ("run", 0.5, 5)]


events = st.lists(
    st.tuples(
        st.sampled_from(["conv", "both", "run", "strange"]),
        st.integers(1, 3),
        st.integers(-20, 220),
        st.integers(1, 90),
    ),
    min_size=1,
    max_size=20,
)
waiting = st.lists(st.tuples(st.integers(0, 180), st.integers(1, 20)), max_size=4)


@given(events, waiting, st.none() | st.floats(0, 1))
def test_the_classes_add_up_to_the_step(
    drawn: list[tuple[str, int, int, int]], waits: list[tuple[int, int]], to_data: float | None
) -> None:
    made = breakdown(profile(*drawn, waits=tuple(waits)), lambda name: KINDS.get(name, ""), to_data)
    assert sum(made.classes.values()) == pytest.approx(made.step_ns)
    assert all(value > -1e-6 for value in made.classes.values())


def test_a_waterfall_ends_at_the_other_step() -> None:
    first = {
        "convolution, forward": 30.0,
        "convolution, backward to data": 20.0,
        "convolution, backward to weights": 25.0,
        "host gap": 5.0,
    }
    second = {"convolution, forward": 60.0, "convolution, backward": 40.0, "dispatch": 7.0}
    falls = waterfall(first, second)
    assert sum(each.change_ns for each in falls) == pytest.approx(107 - 80)
    assert [(each.kind, each.change_ns) for each in falls] == [
        ("convolution, forward", 30),
        ("convolution, backward", -5),
        ("dispatch", 7),
        ("host gap", -5),
    ]
    assert [each.kind for each in largest(falls)] == [
        "convolution, forward",
        "dispatch",
        "convolution, backward",
        "host gap",
    ]
    assert largest(waterfall(first, first)) == []


def test_a_waterfall_joins_what_one_side_does_not_tell_apart() -> None:
    known = {
        "convolution, forward": 30.0,
        "convolution, backward to data": 20.0,
        "convolution, backward to weights": 25.0,
    }
    for second in ({"convolution": 50.0}, {"convolution": 20.0, "convolution, backward": 30.0}):
        for falls in (waterfall(known, second), waterfall(second, known)):
            assert [each.kind for each in falls] == ["convolution"]
            assert abs(falls[0].change_ns) == 25
