"""Which modules are compared, what counts as equal inputs, and what is tried for what lies between two modules."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.ports import causes_of_places, flattening, layers_of_several, paired_calls, transforms
from steelyard.ports.alignment import padded
from steelyard.ports.causes_of_places import Before
from steelyard.ports.mapping import Mapping, Pair
from steelyard.ports.passes import Call, Pass

DRAW = np.random.default_rng(4)
ROUNDING = 1e-7


def call(name, tensors=(), kind="", inputs=(), outputs=()):
    path = name.partition("#")[0]
    return Call(name, path, "", kind, {}, {each: f"{path}/{each}" for each in tensors}, inputs, outputs, 0)


def paired(pairs, lefts, rights):
    found = paired_calls.find(Mapping([Pair(*each) for each in pairs]), Pass(tuple(lefts)), Pass(tuple(rights)))
    return [(each.left, each.right) for each in found]


def test_modules_that_own_the_same_tensors_are_a_pair():
    assert paired([(("a/w",), ("b/w",))], [call("a", "w")], [call("b", "w")]) == [("a", "b")]


def test_one_kernel_for_three_makes_the_smallest_modules_around_them_a_pair():
    pairs = [(("mixed/w",), ("net/att/q/w", "net/att/k/w", "net/att/v/w")), (("mixed/out/w",), ("net/att/o/w",))]
    rights = [call("net"), call("net/att"), *(call(f"net/att/{name}", "w") for name in "qkvo")]
    # The last kernel is never called as a module, as that of torch.nn.MultiheadAttention.
    assert paired(pairs, [call("mixed", "w")], rights) == [("mixed", "net/att")]


def test_a_module_whose_kernels_are_in_modules_that_are_never_called_is_compared_once():
    pairs = [((f"a/{name}",), (f"a/{name}",)) for name in ("w", "out/w")]
    assert paired(pairs, [call("a", "w")], [call("a", "w")]) == [("a", "a")]


def test_a_layer_is_compared_and_not_its_cell_which_is_called_for_every_step():
    rights = [call("lstm"), *(call(f"lstm/cell{number}", "w") for number in ("", "#2", "#3"))]
    assert paired([(("a/w",), ("lstm/cell/w",))], [call("a", "w")], rights) == [("a", "lstm")]
    assert paired([(("lstm/cell/w",), ("a/w",))], rights, [call("a", "w")]) == [("lstm", "a")]


@pytest.mark.parametrize("is_left", [True, False])
def test_an_input_that_is_padded_already_is_equal(is_left):
    plain = DRAW.normal(size=(2, 3, 5, 6))
    with_zeros = np.pad(plain, [(0, 0), (0, 0), (1, 2), (0, 3)]).transpose(0, 2, 3, 1)
    found = padded(plain, with_zeros, ROUNDING) if is_left else padded(with_zeros, plain, ROUNDING)
    assert found is not None
    assert found.axes == ((0, 3, 1, 2) if is_left else (0, 2, 3, 1))
    assert padded(plain, np.pad(plain, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=1), ROUNDING) is None
    assert padded(plain, plain[:, :, 1:], ROUNDING) is None


@pytest.mark.parametrize("left_is_torch", [True, False])
def test_inputs_in_another_order_are_those_that_the_kernel_tells(left_is_torch):
    pictures, kernel = DRAW.normal(size=(2, 4, 3, 3)).astype("f4"), DRAW.normal(size=(5, 4, 3, 3)).astype("f4")
    torch = pictures.reshape(2, -1), kernel.reshape(5, -1)
    keras = pictures.transpose(0, 2, 3, 1).reshape(2, -1), kernel.transpose(2, 3, 1, 0).reshape(-1, 5)
    left, right = (torch, keras) if left_is_torch else (keras, torch)
    transform = transforms.find(left[1], right[1])
    (way,) = flattening.of_kernels(Mapping([Pair(("w",), ("v",), transform)]), {"w"})
    back = flattening.to_left(right[0].shape, *way)
    assert np.array_equal(back.apply(right[0]), left[0])
    assert np.array_equal(back.reverse(left[0], right[0].shape), right[0])
    assert flattening.to_left((2, 35), *way) is None


def test_attention_has_one_layout_whoever_wrote_it():
    kernels, biases = DRAW.normal(size=(4, 6, 6)), DRAW.normal(size=(4, 6))
    torch = {"in_proj_weight": np.concatenate(kernels[:3]), "in_proj_bias": np.concatenate(biases[:3])}
    torch |= {"out_proj/weight": kernels[3], "out_proj/bias": biases[3]}
    flax = {"out/kernel": kernels[3].T.reshape(2, 3, 6), "out/bias": biases[3]}
    for name, kernel, bias in zip(layers_of_several.PROJECTIONS, kernels, biases, strict=False):
        flax |= {f"{name}/kernel": kernel.T.reshape(6, 2, 3), f"{name}/bias": bias.reshape(2, 3)}
    one, other = layers_of_several.attention(torch), layers_of_several.attention(flax)
    assert len(one) == 8
    assert all(np.array_equal(one[role], other[role]) for role in one | other)
    assert layers_of_several.attention({"weight": kernels[0]}) == {}


def test_an_lstm_has_one_layout_whoever_wrote_it():
    first, second, bias = DRAW.normal(size=(16, 3)), DRAW.normal(size=(16, 4)), DRAW.normal(size=16)
    torch = {"weight_ih_l0": first, "weight_hh_l0": second, "bias_ih_l0": bias}
    keras = {"lstm_cell/kernel": first.T, "lstm_cell/recurrent_kernel": second.T, "lstm_cell/bias": bias}
    flax = {}
    for number, gate in enumerate("ifgo"):
        own = [np.split(each, 4)[number] for each in (first, second, bias)]
        flax |= {f"cell/i{gate}/kernel": own[0].T, f"cell/h{gate}/kernel": own[1].T, f"cell/h{gate}/bias": own[2]}
    one, *others = (layers_of_several.lstm(each) for each in (torch, keras, flax))
    assert {*one} == {"input kernel", "hidden kernel", "first bias"}
    assert all(np.array_equal(one[role], other[role]) for other in others for role in one | other)
    assert layers_of_several.lstm(torch | {"weight_ih_l1": first}) == {}


@pytest.fixture
def saved(tmp_path):
    def save(array):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return (path,)

    return save


def cause_of(before, place, left, right):
    found, _ = causes_of_places.before_module(before, place, (left, right), ROUNDING)
    return None if found is None else f"{found.family}: {found.left_words} and {found.right_words}"


def test_what_modules_without_tensors_return_explains_what_follows_them(saved):
    """A mean over all places after a residual connection, which no module before it has returned."""
    pictures = DRAW.normal(size=(2, 4, 3, 3))
    earlier = [call("conv", "w", "convolution", outputs=saved(DRAW.normal(size=(2, 4, 3, 3))))]
    mean, largest = pictures.mean((2, 3)), pictures.max((2, 3))
    assert cause_of(Before(earlier, [mean, pictures], {}), call("head"), mean, largest) == (
        "pooling of all places: mean and maximum"
    )
    assert cause_of(Before(earlier, [], {}), call("head"), mean, largest) is None


def test_pictures_that_are_flattened_in_another_order_are_recognised(saved):
    pictures = DRAW.normal(size=(2, 4, 3, 3))
    earlier = [call("conv", "w", "convolution", outputs=saved(pictures))]
    left, right = pictures.reshape(2, -1), pictures.transpose(0, 2, 3, 1).reshape(2, -1)
    assert (
        cause_of(Before(earlier, [], {}), call("head"), left, right) == "flattening: channels first and channels last"
    )


def test_positions_that_begin_at_another_number_are_recognised():
    left = np.arange(6)[None]
    place = call("positions", "w", "embedding")
    found = cause_of(Before([], [], {}), place, left, left + 2)
    assert found == "numbers of an embedding: rows as given and rows +2"


def test_a_mask_is_looked_for_among_the_inputs_of_the_model(saved):
    q, k, v = (DRAW.normal(size=(2, 5, 6)) for _ in range(3))
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])

    def mixed(forbidden):
        scores = np.exp(np.where(forbidden, -np.inf, q @ k.transpose(0, 2, 1) / np.sqrt(6)))
        return scores / scores.sum(-1, keepdims=True) @ v

    # The order in which modules are called does not say which is which; their names do.
    order = (("a/value", v), ("a/query", q), ("a/key", k))
    earlier = [call(name, "w", "dense", outputs=saved(array)) for name, array in order]
    with_mask = mixed(np.broadcast_to(mask[:, None] == 0, (2, 5, 5)))
    found = cause_of(Before(earlier, [], {"padding": mask}), call("out"), with_mask, mixed(np.zeros((2, 5, 5), bool)))
    assert found == "attention: the mask 'padding' on keys and no mask on keys"


def test_one_kernel_for_query_key_and_value_is_split(saved):
    q, k, v = (DRAW.normal(size=(2, 5, 6)) for _ in range(3))
    scores = [np.exp(q @ k.transpose(0, 2, 1) / divisor) for divisor in (np.sqrt(6), 1)]
    left, right = (each / each.sum(-1, keepdims=True) @ v for each in scores)
    earlier = [call("qkv", "w", outputs=saved(np.concatenate([q, k, v], -1)))]
    found = cause_of(Before(earlier, [], {}), call("out"), left, right)
    assert found == "attention: scores divided by the root of a head's width and scores divided by nothing"


def test_a_gate_that_is_exchanged_is_recognised(saved):
    gate, up = (DRAW.normal(size=(2, 5, 6)) for _ in range(2))
    earlier = [call(name, "w", "dense", outputs=saved(array)) for name, array in (("up", up), ("gate", gate))]
    left, right = gate / (1 + np.exp(-gate)) * up, up / (1 + np.exp(-up)) * gate
    assert cause_of(Before(earlier, [], {}), call("down"), left, right) == (
        "gate: the function of 'gate' and the function of 'up'"
    )
