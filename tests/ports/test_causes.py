"""A cause is stated only if it reproduces one side to rounding and not the other; the settings are those that differ."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.ports import causes
from steelyard.ports.causes import Place, activations, attention, norms, products, recurrent, sums, windows

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(4, 6, 16)) * 0.1
TENSORS = {"weight": DRAW.normal(size=16), "bias": DRAW.normal(size=16)}
IMAGES = DRAW.normal(size=(5, 16, 3, 3))
STATISTICS = TENSORS | {"mean": DRAW.normal(size=16) * 0.1, "variance": DRAW.uniform(0.5, 2, 16)}
SQUARE = {"weight": DRAW.normal(size=(16, 16)), "bias": DRAW.normal(size=16)}
TABLE = {"weight": DRAW.normal(size=(9, 16))}
PICTURES = DRAW.normal(size=(3, 6, 10, 10))
KERNEL = {"weight": DRAW.normal(size=(8, 3, 3, 3)), "bias": DRAW.normal(size=8)}
HEADS = {name: DRAW.normal(size=(2, 5, 12)) for name in ("query", "key", "value")}
MASK = {"mask 'm'": np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 1]])}
LAYER = {f"{name} kernel": DRAW.normal(size=(12, 12)) for name in ("query", "key", "value", "out")}
LAYER |= {f"{name} bias": DRAW.normal(size=12) for name in ("query", "key", "value", "out")}
CELL = {"input kernel": DRAW.normal(size=(16, 3)), "hidden kernel": DRAW.normal(size=(16, 4))}
CELL |= {"first bias": DRAW.normal(size=16), "second bias": DRAW.normal(size=16)}
ROUNDING = 1e-7
FAMILIES = [
    (norms.FAMILIES["layer_norm"][0], {"input": X}, TENSORS),
    (norms.FAMILIES["rms_norm"][0], {"input": X}, TENSORS),
    (norms.FAMILIES["batch_norm"][0], {"input": IMAGES}, STATISTICS),
    (products.FAMILIES["dense"][0], {"input": X}, SQUARE),
    (products.FAMILIES["embedding"][0], {"input": DRAW.integers(2, 7, (3, 5)).astype(float)}, TABLE),
    (activations.FAMILY, {"input": X * 30}, {}),
    (attention.FAMILY, HEADS | MASK, {}),
    (attention.LAYER, {"input": HEADS["query"], **MASK}, LAYER),
    (recurrent.FAMILIES["lstm"][0], {"input": DRAW.normal(size=(4, 5, 3))}, CELL),
    (activations.GATE, {"'a'": X * 30, "'b'": X * 20}, {}),
    (products.NUMBERS, {"input": DRAW.integers(0, 7, (3, 5)).astype(float)}, {}),
    (windows.EVERYWHERE, {"input": PICTURES}, {}),
    (windows.FLAT, {"input": PICTURES}, {}),
    (sums.FAMILY, {"input": X * 30, "what 'a' receives": X * 20, "what 'b' returns": X * 10}, {}),
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


USUAL = {"padding": 1, "stride": (2, 2), "dilation": 1, "groups": 2, "channels": windows.SECOND, "kernel": "as it is"}
USUAL |= {"bias": 1, "activation": "no activation"}


@pytest.mark.parametrize(
    "other",
    [
        {"padding": windows.SAME},
        {"padding": windows.SAME, "dilation": 2},
        {"kernel": "flipped"},
        {"kernel": windows.EXCHANGED},
        {"bias": 0},
        {"activation": "ReLU"},
    ],
    ids=str,
)
def test_settings_of_convolutions_are_recognised(other):
    family = windows.CONVOLUTION
    one, two = (computed(family, {"input": PICTURES}, KERNEL, USUAL | each) for each in ({}, other))
    assert one.shape == two.shape == (3, 8, 5, 5)
    declared = [{"stride": [2, 2], "groups": 2, "padding": "same", **each} for each in ({"padding": [1, 1]}, other)]
    found = causes.explain(family, Place({"input": PICTURES}, KERNEL, one, two, *declared), ROUNDING)
    assert found is not None
    assert {name: found.right[name] for name in found.differing} == other


def test_a_convolution_is_that_of_its_definition():
    """Compared with a loop over places: padding 1, stride 2, two groups."""
    found = computed(windows.CONVOLUTION, {"input": PICTURES}, KERNEL, USUAL)
    padded = np.pad(PICTURES, [(0, 0), (0, 0), (1, 1), (1, 1)])
    for channel, row, column in np.ndindex(8, 5, 5):
        group = channel // 4
        seen = padded[:, 3 * group : 3 * group + 3, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        wanted = (seen * KERNEL["weight"][channel]).sum((1, 2, 3)) + KERNEL["bias"][channel]
        assert np.allclose(found[:, channel, row, column], wanted)


POOLED = {"kind": "maximum", "window": 3, "stride": 2, "padding": 1, "size": "down", "mean over": "the window"}
POOLED |= {"channels": windows.SECOND, "activation": "ReLU"}


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        ({}, {"kind": "mean"}),
        ({}, {"padding": windows.SAME}),
        ({}, {"activation": "no activation"}),
        ({"kind": "mean"}, {"mean over": "the places that are there"}),
        ({"kind": "mean"}, {"padding": windows.SAME}),
        ({"kind": "mean", "padding": windows.SAME}, {"mean over": "the places that are there"}),
        ({"window": 2, "padding": windows.NONE}, {"kind": "mean"}),
    ],
    ids=str,
)
def test_settings_of_pooling_are_recognised(usual, other):
    family = windows.POOLING
    one, two = (computed(family, {"input": PICTURES}, {}, POOLED | usual | each) for each in ({}, other))
    assert one.shape == two.shape == (3, 6, 5, 5)
    found = causes.explain(family, Place({"input": PICTURES}, {}, one, two), ROUNDING)
    assert found is not None
    again = [computed(family, {"input": PICTURES}, {}, each) for each in (found.left, found.right)]
    assert np.allclose(again[0], one)
    assert np.allclose(again[1], two)
    assert set(found.differing) == set(other)


def test_sizes_that_are_rounded_up_have_one_more_window_that_begins_in_the_picture():
    """The rule of torch.nn.MaxPool2d(ceil_mode=True): a last window that would begin in the padding is left out."""
    odd = PICTURES[..., :9, :9]
    up = POOLED | {"window": 2, "padding": windows.NONE, "size": "up"}
    assert computed(windows.POOLING, {"input": odd}, {}, up).shape == (3, 6, 5, 5)
    assert computed(windows.POOLING, {"input": odd}, {}, up | {"size": "down"}).shape == (3, 6, 4, 4)
    padded = POOLED | {"window": 2, "padding": 1, "size": "up"}
    assert computed(windows.POOLING, {"input": PICTURES}, {}, padded).shape == (3, 6, 6, 6)


def test_strides_are_recognised_although_the_sizes_differ():
    one, two = (computed(windows.CONVOLUTION, {"input": PICTURES}, KERNEL, USUAL | {"stride": each}) for each in (1, 2))
    assert one.shape != two.shape
    declared = [{"stride": [each, each], "groups": 2, "padding": [1, 1]} for each in (1, 2)]
    found = causes.explain(windows.CONVOLUTION, Place({"input": PICTURES}, KERNEL, one, two, *declared), ROUNDING)
    assert found is not None
    assert found.differing == ("stride",)


def test_an_lstm_is_that_of_its_definition():
    """One step, written out with the gates in PyTorch's order (Hochreiter and Schmidhuber, 1997, with forget gates)."""
    family = recurrent.FAMILIES["lstm"][0]
    x = DRAW.normal(size=(2, 1, 3))
    usual = {name: values[0] for name, values in family.values(Place({"input": x}, CELL, x, x)).items()}
    i, f, c, o = np.split(x[:, 0] @ CELL["input kernel"].T + CELL["first bias"] + CELL["second bias"], 4, -1)
    del f  # the cell is zero before the first step
    wanted = 1 / (1 + np.exp(-o)) * np.tanh(1 / (1 + np.exp(-i)) * np.tanh(c))
    assert np.allclose(computed(family, {"input": x}, CELL, usual)[:, 0], wanted)


def test_heads_that_share_keys_and_values_are_computed():
    query, key, value = HEADS["query"], HEADS["key"][..., :6], HEADS["value"][..., :6]
    place = {"query": query, "key": key, "value": value}
    repeated = {"query": query} | {
        name: np.repeat(place[name].reshape(2, 5, 2, 3), 2, 2).reshape(2, 5, 12) for name in ("key", "value")
    }
    usual = {name: values[0] for name, values in attention.FAMILY.values(Place(place, {}, query, query)).items()}
    usual["heads"] = 4
    assert np.allclose(*(computed(attention.FAMILY, each, {}, usual) for each in (place, repeated)))


def test_a_family_of_few_samples_looks_at_no_more_of_them():
    one, two = (computed(windows.CONVOLUTION, {"input": PICTURES}, KERNEL, USUAL | {"bias": each}) for each in (1, 0))
    one[2], two[2] = np.nan, np.nan
    declared = {"stride": [2, 2], "groups": 2, "padding": [1, 1]}
    found = causes.explain(
        windows.CONVOLUTION, Place({"input": PICTURES}, KERNEL, one, two, declared, declared), ROUNDING
    )
    assert found is not None
    assert found.differing == ("bias",)


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


@pytest.mark.parametrize(("low", "name"), [(np.float16, "float16")])
def test_a_layer_that_returns_half_precision_is_recognised(low, name):
    """Both the factors and the result are rounded, as in a layer that is converted."""
    exact = X @ SQUARE["weight"].T + SQUARE["bias"]
    factors = [array.astype(low).astype(np.float64) for array in (X, SQUARE["weight"], SQUARE["bias"])]
    rounded = (factors[0] @ factors[1].T + factors[2]).astype(low).astype(np.float64)
    place = Place({"input": X}, SQUARE, exact, rounded)
    found = causes.explain(products.FAMILIES["dense"][0], place, ROUNDING)
    assert found is not None
    assert found.right_words == f"factors and results in {name}"
