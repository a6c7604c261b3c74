"""The batches of both loaders are compared array by array, and what makes one the other is named."""

from __future__ import annotations

import pytest

HEAD = """
from numpy_model import *

def model():
    return NumpyModel([dense("a", 4, 3, 0)], lambda call, x: call("a", x))

PICTURES = np.random.default_rng(1).uniform(0, 255, (12, 5, 6, 3)).astype("f4")
LABELS = np.arange(12)
"""
LOADER = """
def batches():
    for start in range(0, 12, {size}):
        x, y = PICTURES[start : start + {size}], LABELS[start : start + {size}]
        yield {batch}
"""
ROWS = """
[inputs.x]
shape = [6, 4]
"""
PLAIN = "x, y"


@pytest.fixture
def loaded(port):
    def check(first=PLAIN, second=PLAIN, size=4, second_size=4, more=""):
        port.describe(ROWS)
        port.write("first.py", HEAD + LOADER.format(size=size, batch=first))
        port.write("second.py", HEAD + more + LOADER.format(size=second_size, batch=second))
        answer = port.check()
        stage = answer.json["record"]["training"][-1]
        assert stage["name"] == "batches of the loaders"
        return answer, stage

    return check


@pytest.mark.parametrize(
    "second", [PLAIN, "{'x': x, 'y': y}", "np.moveaxis(x, -1, 1), y", "x.astype('f8'), y.astype('f4')"]
)
def test_equal_batches_are_equal_in_any_container_layout_and_dtype(loaded, second):
    answer, stage = loaded(second=second)
    assert (answer.code, stage["compared"], stage["differences"]) == (0, 2, [])


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ("x / 255, y", "the values of second are 0.003922 times those of first"),
        ("x / 127.5 - 1, y", "second has the values of first times 0.007843 plus -1"),
        (
            "(x - [100, 120, 90]) / [50, 60, 55], y",
            "second has the values of first times 0.02 plus -2, times 0.01667 plus -2, times 0.01818 plus -1.636 in channels 0",
        ),
        ("x[..., ::-1], y", "second has the channels in reverse order"),
        ("x[:, :, ::-1], y", "second has axis 2 in reverse order"),
        ("x[::-1], y", "second has the same samples in another order"),
        ("np.where(x > 100, x, 0), y", ""),
        ("np.where(np.arange(4)[:, None, None, None] == 1, x + x * x, x), y", "9 of 12 samples are in both"),
        ("x[:, :4], y", "a sample has the shape 5x6x3 in first and 4x6x3 in second"),
    ],
)
def test_what_makes_one_array_the_other_is_named(loaded, second, cause):
    answer, stage = loaded(second=second)
    (found,) = stage["differences"]
    assert found["cause"].startswith(cause)
    assert bool(found["cause"]) == bool(cause)
    assert answer.code == 1


def test_other_sizes_of_batches_are_named(loaded):
    answer, stage = loaded(second_size=6)
    assert {each["cause"] for each in stage["differences"]} == {
        "first has batches of 4, 4, 4, second of 6, 6",
    }
    assert answer.code == 1


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("x", "the batches hold another number of arrays: first has 0, 1, second has output"),
        ("'nothing'", "batches() yielded a str without an array"),
        ("x / LABELS[99]", "batches() of second.py failed in line"),
    ],
)
def test_a_loader_that_fails_is_a_sentence(loaded, second, said):
    answer, stage = loaded(second=second)
    assert answer.code == 2
    assert said in stage["unseen"]


def test_batches_without_samples_are_named(loaded):
    answer, stage = loaded(second="x[:0], y")
    assert answer.code == 1
    assert "first has batches of 4, 4, 4, second of 0, 0, 0" in stage["differences"][0]["cause"]
