"""Courses of losses: what right code of five frameworks does is never odd, and what planted mistakes do is."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.statistics import courses

REAL = Path(__file__).parent / "real_courses.npz"
STEPS = 300
RIGHT = 2.3 * np.exp(-np.arange(STEPS) / 80)


def _real() -> dict[str, dict[str, Any]]:
    """Return the recorded courses: training -> {framework or mistake: losses}."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(REAL) as stored:
        for name in stored.files:
            training, who = name.split("/")
            found.setdefault(training, {})[who] = stored[name]
    return found


TRAININGS = _real()
MISTAKES = {"no-backward-through-the-body", "first-eight-batches-again"}
UNSEEN = {"bfloat16"}


def _right(training: str) -> dict[str, dict[int, Any]]:
    return {who: {1: each} for who, each in TRAININGS[training].items() if who not in MISTAKES | UNSEEN}


@pytest.mark.parametrize("training", TRAININGS)
def test_right_code_of_all_frameworks_goes_together(training: str) -> None:
    """Also in threes, and in pairs, where nothing but a warning could follow."""
    right = _right(training)
    assert courses.compare(right) == courses.Compared()
    names = sorted(right)
    for place, _ in enumerate(names):
        for size in (2, 3):
            chosen = [names[(place + each) % len(names)] for each in range(min(size, len(names)))]
            assert courses.compare({name: right[name] for name in chosen}) == courses.Compared()


@pytest.mark.parametrize(
    ("training", "mistake"), [(name, who) for name, each in TRAININGS.items() for who in each if who in MISTAKES]
)
def test_a_mistake_after_the_certified_steps_is_odd(training: str, mistake: str) -> None:
    """Its loss is nowhere near those of the other frameworks."""
    wrong = {"wrong": {1: TRAININGS[training][mistake]}}
    found = courses.compare(_right(training) | wrong)
    assert [each.key for each in found.odd] == ["wrong"]
    assert found.odd[0].stretch.first > 5


def test_a_pipeline_that_repeats_its_first_batches_is_odd_beside_any_two_frameworks() -> None:
    training, mistake = "resnet18:digits, batch 16, pipeline", "first-eight-batches-again"
    right = _right(training)
    for one, other in combinations(right, 2):
        found = courses.compare({one: right[one], other: right[other], "wrong": {1: TRAININGS[training][mistake]}})
        assert [each.key for each in found.odd] == ["wrong"]


def _noisy(seed: int, share: float = 0.003) -> Any:
    return RIGHT * np.exp(np.random.default_rng(seed).normal(0, share, STEPS))


STOPPED = np.where(np.arange(STEPS) < 10, RIGHT, RIGHT[9])


def test_the_stretch_says_where_and_how_far() -> None:
    found = courses.compare({"a": {1: _noisy(1)}, "b": {1: _noisy(2)}, "c": {4: STOPPED}})
    (odd,) = found.odd
    assert (odd.key, odd.number) == ("c", 4)
    assert odd.stretch.own == pytest.approx(RIGHT[9])
    assert 20 < odd.stretch.first < 60
    assert odd.stretch.last == courses.edges(STEPS)[-1]
    steps = slice(odd.stretch.first - 1, odd.stretch.last)
    assert odd.stretch.others == pytest.approx(RIGHT[steps].mean(), rel=0.05)


def test_two_sides_are_named_where_there_is_no_majority() -> None:
    two = courses.compare({"a": {1: _noisy(1)}, "b": {1: STOPPED}})
    assert two.parting is not None and two.odd == ()
    four = courses.compare({"a": {1: _noisy(1)}, "b": {1: _noisy(2)}, "c": {1: STOPPED}, "d": {1: STOPPED}})
    assert four.odd == ()
    five = courses.compare(
        {name: {1: _noisy(seed)} for seed, name in enumerate("abc")} | {"d": {1: STOPPED}, "e": {1: STOPPED}}
    )
    assert five.parting is not None and five.odd == ()
    assert five.parting.sides == (("a", "b", "c"), ("d", "e"))


def test_a_jump_that_comes_back_is_not_odd() -> None:
    jumped = _noisy(3)
    jumped[20:34] *= 5
    jumped[150:160] *= 9
    assert courses.compare({"a": {1: _noisy(1)}, "b": {1: _noisy(2)}, "c": {1: jumped}}) == courses.Compared()


def test_a_training_may_be_ahead_of_others_for_a_while() -> None:
    """It leaves a plateau at step 120, the others at 160 or so."""

    def leaves(step: float) -> Any:
        return 0.2 + 2.1 / (1 + np.exp((np.arange(STEPS) - step) / 5))

    ahead = {"a": {1: leaves(160)}, "b": {1: leaves(163)}, "c": {1: leaves(120)}}
    assert courses.compare(ahead) == courses.Compared()
    far = {"a": {1: leaves(200)}, "b": {1: leaves(203)}, "c": {1: leaves(50)}}
    assert [each.key for each in courses.compare(far).odd] == ["c"]


def test_memorised_batches_say_nothing() -> None:
    """Below 2 % of the first loss, 1e-5 beside 1e-2 is no difference."""
    found = {
        name: {1: np.maximum(2 * 0.9 ** np.arange(STEPS), rest)}
        for name, rest in (("a", 1e-2), ("b", 1e-2), ("c", 1e-5))
    }
    assert courses.compare(found) == courses.Compared()


def test_what_others_are_apart_is_the_yardstick() -> None:
    """A course that is 60 % above two others is odd if these go together, and not if they are 30 % apart themselves."""
    found = {"a": {1: RIGHT}, "b": {1: RIGHT * 1.01}, "c": {1: np.where(np.arange(STEPS) < 10, RIGHT, 3 * RIGHT)}}
    assert [each.key for each in courses.compare(found).odd] == ["c"]
    found["b"] = {1: RIGHT * np.where(np.arange(STEPS) < 10, 1, 1.9)}
    assert courses.compare(found) == courses.Compared()


def test_a_framework_that_does_not_repeat_itself_widens_the_yardstick() -> None:
    wide = {1: RIGHT, 2: RIGHT * 1.8}
    found = {"a": wide, "b": wide, "c": {1: np.where(np.arange(STEPS) < 10, RIGHT, 3 * RIGHT)}}
    assert courses.compare(found).odd == ()


@given(length=st.integers(0, 5000))
def test_windows_follow_each_other_and_cover_whole_steps(length: int) -> None:
    found = courses.edges(length)
    assert found[0] == 0
    assert all(1 <= b - a <= max(1, 0.16 * a + 1) for a, b in pairwise(found))
    assert found[-1] <= length < max(found[-1] + 1, round(found[-1] * courses.GROWTH))
    assert found == courses.edges_of(len(found) - 1)
    assert len(courses.medians(np.ones(length))) == len(found) - 1


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    contenders=st.integers(2, 8),
    rounds=st.integers(1, 3),
    noise=st.floats(0, 0.05),
    repeats=st.booleans(),
    lengths=st.integers(1, 200),
)
def test_right_courses_that_differ_by_noise_are_never_odd(
    seed: int, contenders: int, rounds: int, noise: float, repeats: bool, lengths: int
) -> None:
    """Processes of other lengths, frameworks that repeat themselves bit by bit, and batches that all have in common."""
    random = np.random.default_rng(seed)
    batches = np.exp(random.normal(0, 0.5, STEPS))
    found = {}
    for contender in range(contenders):
        course = RIGHT * batches * np.exp(random.normal(0, noise, STEPS))
        each = [course if repeats else course * np.exp(random.normal(0, noise, STEPS)) for _ in range(rounds)]
        found[str(contender)] = {
            number: one[: int(random.integers(lengths, STEPS))] for number, one in enumerate(each, 1)
        }
    assert courses.compare(found) == courses.Compared()


@given(order=st.permutations(range(4)), scale=st.floats(1e-3, 1e3))
def test_neither_the_order_of_contenders_nor_the_unit_of_the_loss_matters(order: list[int], scale: float) -> None:
    made = [("a", _noisy(1)), ("b", _noisy(2)), ("c", _noisy(3)), ("d", STOPPED)]
    found = courses.compare({made[place][0]: {1: scale * made[place][1]} for place in order})
    assert [each.key for each in found.odd] == ["d"]


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"a": {}},
        {"a": {1: [1.0]}},
        {"a": {1: []}, "b": {1: [1.0]}},
        {"a": {1: [0.0] * 99}, "b": {1: [0.0] * 99}, "c": {1: [0.0] * 99}},
    ],
)
def test_courses_without_steps_and_losses_that_are_all_zero_are_no_error(
    found: dict[str, dict[int, list[float]]],
) -> None:
    assert courses.compare(found) == courses.Compared()
