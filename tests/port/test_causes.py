"""A cause is stated only if it reproduces one side to rounding and not the other; the settings are those that differ."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.port import causes
from steelyard.port.causes import Place, activations, attention, norms, products

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(4, 6, 16)) * 0.1
TENSORS = {"weight": DRAW.normal(size=16), "bias": DRAW.normal(size=16)}
IMAGES = DRAW.normal(size=(5, 16, 3, 3))
STATISTICS = TENSORS | {"mean": DRAW.normal(size=16) * 0.1, "variance": DRAW.uniform(0.5, 2, 16)}
SQUARE = {"weight": DRAW.normal(size=(16, 16)), "bias": DRAW.normal(size=16)}
TABLE = {"weight": DRAW.normal(size=(9, 16))}
HEADS = {name: DRAW.normal(size=(2, 5, 12)) for name in ("query", "key", "value")}
ROUNDING = 1e-7
FAMILIES = [
    (norms.FAMILIES["layer_norm"][0], {"input": X}, TENSORS),
    (norms.FAMILIES["rms_norm"][0], {"input": X}, TENSORS),
    (norms.FAMILIES["batch_norm"][0], {"input": IMAGES}, STATISTICS),
    (products.FAMILIES["dense"][0], {"input": X}, SQUARE),
    (products.FAMILIES["embedding"][0], {"input": DRAW.integers(2, 7, (3, 5)).astype(float)}, TABLE),
    (activations.FAMILY, {"input": X * 30}, {}),
    (attention.FAMILY, HEADS, {}),
]


def every_change():
    """Yield family, usual settings, and settings with one other value, for every value of every setting."""
    for family, inputs, tensors in FAMILIES:
        place = Place(inputs, tensors, np.zeros(0), np.zeros(0))
        known = {name: list(dict.fromkeys(values)) for name, values in family.values(place).items()}
        usual = {name: values[0] for name, values in known.items()}
        for name, values in known.items():
            for value in values[1:]:
                yield pytest.param(
                    family, inputs, tensors, usual, usual | {name: value}, id=f"{family.name}, {name} {value}"
                )


def computed(family, inputs, tensors, settings):
    return family.compute(Place(inputs, tensors, np.zeros(0), np.zeros(0)), settings)


@pytest.mark.parametrize(("family", "inputs", "tensors", "left", "right"), list(every_change()))
def test_every_value_of_every_setting_is_recognised(family, inputs, tensors, left, right):
    one, other = (computed(family, inputs, tensors, settings) for settings in (left, right))
    if other is None:
        pytest.skip("these tensors do not fit this setting")
    place = Place(inputs, tensors, one, other)
    if np.abs(one - other).max() <= ROUNDING * np.abs(one).max():
        pytest.skip("both compute the same on these inputs")
    found = causes.explain(family, place, ROUNDING)
    assert found is not None
    one_again, other_again = (computed(family, inputs, tensors, settings) for settings in (found.left, found.right))
    assert np.allclose(one_again, one, rtol=0, atol=1e-6 * np.abs(one).max())
    assert np.allclose(other_again, other, rtol=0, atol=1e-6 * np.abs(other).max())
    assert len(found.differing) == 1


def test_a_cause_that_explains_one_side_only_is_not_stated():
    family, inputs, tensors = FAMILIES[0]
    one = computed(family, inputs, tensors, {"epsilon": 1e-5, "place": norms.INSIDE, "subtracted": 0})
    assert causes.explain(family, Place(inputs, tensors, one, one + DRAW.normal(size=one.shape)), ROUNDING) is None


def test_equal_sides_have_no_cause():
    family, inputs, tensors = FAMILIES[0]
    one = computed(family, inputs, tensors, {"epsilon": 1e-5, "place": norms.INSIDE, "subtracted": 0})
    assert causes.explain(family, Place(inputs, tensors, one, one), ROUNDING) is None


def test_an_epsilon_of_the_users_own_is_tried_because_the_module_declares_it():
    family, inputs, tensors = FAMILIES[0]
    settings = [{"epsilon": value, "place": norms.INSIDE, "subtracted": 0} for value in (3.7e-4, 1e-5)]
    one, other = (computed(family, inputs, tensors, each) for each in settings)
    assert causes.explain(family, Place(inputs, tensors, one, other), ROUNDING) is None
    found = causes.explain(family, Place(inputs, tensors, one, other, {"epsilon": 3.7e-4}), ROUNDING)
    assert found is not None
    assert (found.left_words, found.right_words) == ("epsilon 0.00037", "epsilon 1e-05")
