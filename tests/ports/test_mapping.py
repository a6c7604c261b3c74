"""Tensors of two sides are mapped by their values, whatever their layout, and by names and places where values do not tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from steelyard.ports import contents, mapping, transforms
from steelyard.ports.names import likeness, parent, words
from steelyard.ports.partners import given_to_right, partners
from steelyard.ports.side_tensors import SideTensor
from steelyard.ports.transforms import Transform

DRAWN = np.random.default_rng(0)


def draw(*shape):
    return DRAWN.normal(size=shape).astype("f4")


@pytest.fixture
def side(tmp_path):
    def make(**tensors):
        found = []
        for place, (name, array) in enumerate(tensors.items()):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
            np.save(path, array)
            trained = not name.startswith(("mean", "var"))
            found.append(SideTensor(name, array.shape, str(array.dtype), trained, path, place))
        return found

    return make


def pairs(found):
    return {pair.left: (pair.right, pair.transform.words, pair.found_by) for pair in found.pairs}


@given(
    arrays.arrays("f4", arrays.array_shapes(max_dims=3, max_side=5), elements=st.floats(-9, 9, width=32)), st.randoms()
)
def test_a_digest_is_the_same_in_any_order_and_layout(array, random):
    values = array.reshape(-1).tolist()
    random.shuffle(values)
    assert contents.digest(np.array(values, "f4")) == contents.digest(array.T)


@given(arrays.arrays("f4", 6, elements=st.floats(-9, 9, width=32)), st.integers(0, 5))
def test_a_digest_differs_if_one_value_is_another(array, place):
    other = array.copy()
    other[place] += 1
    assert contents.digest(other) != contents.digest(array)


def test_a_large_tensor_is_read_in_blocks(monkeypatch):
    array = draw(300)
    whole = contents.digest(array)
    monkeypatch.setattr(contents, "BLOCK", 7)
    assert contents.digest(array) == whole


@given(arrays.array_shapes(min_dims=1, max_dims=4, min_side=2, max_side=4), st.data())
def test_every_transform_is_undone_by_its_reverse(shape, data):
    left = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    right = tuple(data.draw(st.permutations(shape)))
    for transform in transforms.candidates(shape, right):
        moved = transform.apply(left)
        assert moved.shape == right
        assert np.array_equal(transform.reverse(moved, shape), left)


def test_kernels_are_found_in_other_layouts(side):
    dense, conv, heads = draw(4, 6), draw(8, 3, 5, 5), draw(12, 12)
    left = side(**{"a.weight": dense, "b.weight": conv, "c.weight": heads})
    right = side(c=heads.T.reshape(12, 3, 4), b=conv.transpose(2, 3, 1, 0), a=dense.T)
    assert pairs(mapping.find(left, right)) == {
        ("a.weight",): (("a",), "transposed", "content"),
        ("b.weight",): (("b",), "axes 2, 3, 1, 0", "content"),
        ("c.weight",): (("c",), "transposed, reshaped to 12x3x4", "content"),
    }


def test_gates_in_another_order_are_found(side):
    kernel = draw(4, 3, 5)
    left = side(w=kernel.reshape(12, 5))
    right = side(w=kernel[[0, 1, 3, 2]].reshape(12, 5).T)
    (pair,) = mapping.find(left, right).pairs
    assert pair.transform == Transform(axes=(1, 0), along=1, blocks=(0, 1, 3, 2))
    assert np.array_equal(pair.transform.apply(left[0].values), right[0].values)
    assert np.array_equal(pair.transform.reverse(right[0].values, (12, 5)), left[0].values)


@pytest.mark.parametrize("whole_is_left", [True, False])
def test_a_fused_kernel_is_mapped_to_its_parts(side, whole_is_left):
    q, k, v = draw(6, 4), draw(6, 4), draw(6, 4)
    whole, parts = side(qkv=np.concatenate([q, k, v])), side(query=q.T, key=k.T, value=v.T)
    found = mapping.find(whole, parts) if whole_is_left else mapping.find(parts, whole)
    (pair,) = found.pairs
    names = (pair.left, pair.right) if whole_is_left else (pair.right, pair.left)
    assert names == (("qkv",), ("query", "key", "value"))
    assert (found.only_left, found.only_right) == ([], [])


def test_a_bias_that_is_the_sum_of_two_is_mapped_to_both(side):
    one, other = draw(8), draw(8)
    found = mapping.find(side(b_ih=one, b_hh=other), side(bias=one + other))
    (pair,) = found.pairs
    assert (pair.left, pair.right, pair.is_sum) == (("b_ih", "b_hh"), ("bias",), True)


def test_one_bias_for_each_gate_is_mapped_to_the_sum_of_two(side):
    one, other = draw(8), draw(8)
    pieces = dict(zip("gofi", np.split(one + other, 4), strict=True))
    found = mapping.find(side(b_ih=one, b_hh=other), side(**{f"h{gate}": pieces[gate] for gate in "fgio"}))
    (pair,) = found.pairs
    assert (pair.left, pair.right, pair.is_sum) == (("b_ih", "b_hh"), ("hg", "ho", "hf", "hi"), True)
    assert (found.only_left, found.only_right) == ([], [])


def test_scales_of_a_new_network_belong_to_the_modules_whose_kernels_are_known(side):
    kernels = [draw(4, 4) for _ in range(3)]
    left, right = {}, {}
    for n, kernel in enumerate(kernels):
        left |= {f"enc.{n}.w": kernel, f"enc.{n}.scale": np.ones(4, "f4"), f"enc.{n}.shift": np.zeros(4, "f4")}
    for n in (2, 0, 1):  # another order, as in a sorted tree
        right |= {f"z{n}/shift": np.zeros(4, "f4"), f"z{n}/scale": np.ones(4, "f4"), f"z{n}/w": kernels[n].T}
    found = pairs(mapping.find(side(**left), side(**right)))
    assert {one[0]: other[0][0] for one, other in found.items()} == {
        f"enc.{n}.{role}": f"z{n}/{role}" for n in range(3) for role in ("w", "scale", "shift")
    }


def test_other_values_are_mapped_by_shape_and_name_and_never_called_equal(side):
    left = side(**{"head.weight": draw(3, 5), "body.weight": draw(3, 5)})
    right = side(**{"body/kernel": draw(5, 3), "head/kernel": draw(5, 3)})
    found = mapping.find(left, right)
    assert pairs(found) == {
        ("head.weight",): (("head/kernel",), "transposed", "name"),
        ("body.weight",): (("body/kernel",), "transposed", "name"),
    }
    assert not any(pair.equal for pair in found.pairs)


def test_a_square_kernel_with_other_values_is_transposed_by_its_role(side):
    (pair,) = mapping.find(side(**{"a.weight": draw(4, 4)}), side(**{"a/kernel": draw(4, 4)})).pairs
    assert pair.transform.words == "transposed"
    (pair,) = mapping.find(side(**{"a.weight": draw(4, 4)}), side(**{"b.weight": draw(4, 4)})).pairs
    assert pair.transform.words == ""


def test_a_head_that_is_tied_on_one_side_alone_is_mapped_and_not_called_equal(side):
    table, other = draw(9, 4), draw(9, 4)
    left = side(**{"table.weight": table, "head.weight": table})
    left[1] = replace(left[1], shares="table.weight")
    found = mapping.find(left, side(**{"table.weight": table, "head.weight": other}))
    assert {pair.left: (pair.right, pair.equal) for pair in found.pairs} == {
        ("head.weight",): (("head.weight",), False),
        ("table.weight",): (("table.weight",), True),
    }
    tied = side(**{"table.weight": table, "head.weight": table})
    tied[1] = replace(tied[1], shares="table.weight")
    assert len(mapping.find(left, tied).pairs) == 1


def test_what_has_no_partner_is_named(side):
    same = draw(3)
    found = mapping.find(side(a=same, head=draw(2, 7)), side(a=same))
    assert (found.only_left, found.only_right) == (["head"], [])


def test_names_of_frameworks_are_alike_in_their_words():
    assert words("encoder.layer.0.LayerNorm.weight") == ("encoder", "layer", "0", "layer", "norm", "weight")
    assert words("params/encoder/LayerNorm_0/kernel")[-1] == "weight"
    assert parent("a.b.weight") == "a.b"
    assert parent("a/b/kernel") == "a/b"
    assert parent("weight") == "weight"
    same, other = (
        likeness("layer.1.up.weight", "layer/1/up/kernel"),
        likeness("layer.1.up.weight", "layer/2/down/kernel"),
    )
    assert same == 1 > other


@pytest.mark.parametrize("scale", [np.ones(4, "f4"), draw(4)], ids=["new", "trained"])
def test_a_scale_of_ones_is_no_variance_of_ones(side, scale):
    left = side(scale=scale, mean=np.zeros(4, "f4"), variance=np.ones(4, "f4"))
    right = side(var=np.full(4, 1.3, "f4"), mean=np.full(4, 0.3, "f4"), weight=np.ones(4, "f4"))
    found = {pair.left[0]: pair.right[0] for pair in mapping.find(left, right).pairs}
    assert found == {"scale": "weight", "mean": "mean", "variance": "var"}


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_arrays_of_a_sum_belong_to_its_summands_also_where_it_is_in_parts(parts):
    """Gradients of two summands are both that of the sum, whose parts are several tensors of the right side."""
    names = tuple(f"part {number}" for number in range(parts))
    pair = mapping.Pair(("a", "b"), names, transforms.AS_IT_IS, mapping.CONTENT, is_sum=True)
    gradient = DRAWN.normal(size=8)
    given = given_to_right(pair, {"a": gradient, "b": gradient}, dict.fromkeys(names, (8 // parts,)))
    assert {*given} == {*names}
    found = [*partners(pair, {"a": gradient, "b": gradient}, given)]
    assert [each.left_name for each in found] == ["a", "b"]
    assert all(np.array_equal(each.left, each.right) for each in found)
