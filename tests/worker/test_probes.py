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
