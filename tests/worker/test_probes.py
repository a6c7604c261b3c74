"""Inner tensors are collected only on request, the first of each name."""

from __future__ import annotations

import pytest

from steelyard_worker import probes
from steelyard_worker.probes import probe


def test_a_probe_returns_its_tensor_and_keeps_nothing_unless_tensors_are_collected() -> None:
    tensor = object()
    assert probe("layer0", tensor) is tensor
    with probes.collected() as found:
        assert found == {}
        assert probe("layer0", tensor) is tensor
        probe("layer0", "of a second call")
    probe("layer1", tensor)
    assert found == {"layer0": tensor}


def test_nothing_is_collected_any_more_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), probes.collected() as found:
        raise ZeroDivisionError
    probe("layer0", 1)
    assert found == {}


@pytest.mark.parametrize(
    "output", ["x", ("x", ("h", "c")), ["x"], {"hidden": "x", "attention": "y"}, ((None, "x"), "y")], ids=str
)
def test_of_a_module_that_returns_several_tensors_the_first_is_kept(output: object) -> None:
    with probes.collected() as found:
        probes.probe_output("lstm", output, str, str.upper)
    assert found == {"lstm": "X"}


def test_what_an_implementation_passes_itself_comes_before_the_first_of_several() -> None:
    """A module may return its steps in another layout than the implementation hands on."""
    with probes.collected() as found:
        probes.probe_output("lstm", ("of the module", "state"), str)
        probe("lstm", "of the implementation")
    assert found == {"lstm": "of the implementation"}
    with probes.collected() as again:
        probes.probe_output("dense", (1, 2), str)
    assert again == {}, "nothing is left of an earlier collection, and numbers are no tensors"
