"""The check of an implementation's tensors, and tensors that several modules share."""

from __future__ import annotations

import pytest

from steelyard_worker.frameworks import named_tensors
from steelyard_worker.network import Input, Network, Parameter
from steelyard_worker.protocol import Refusal

TABLE, OUT = object(), object()


def network(*names: str) -> Network:
    return Network(
        tuple(Parameter(name, (3, 2), "dense", "constant:0") for name in names), (Input("x", (2,), "float32"),), 6
    )


@pytest.mark.parametrize("listed", ["table", "out"])
def test_a_shared_tensor_has_the_name_that_is_listed(listed: str) -> None:
    assert named_tensors.distinct(network(listed), {"table": TABLE, "out": TABLE}) == {listed: TABLE}


def test_a_shared_tensor_that_is_not_listed_keeps_its_first_name() -> None:
    assert named_tensors.distinct(network("other"), {"table": TABLE, "out": TABLE}) == {"table": TABLE}


def test_tensors_that_are_equal_and_not_shared_stay_two() -> None:
    assert named_tensors.distinct(network("table", "out"), {"table": TABLE, "out": OUT}) == {"table": TABLE, "out": OUT}


def test_a_shared_tensor_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(Refusal, match=r"Tensor out of the implementation is the same tensor as table; list it once"):
        named_tensors.distinct(network("table", "out"), {"table": TABLE, "out": TABLE})
