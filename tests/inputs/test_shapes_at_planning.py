"""The shapes of prepared samples follow from the options, so a network that does not fit is refused before anything is prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import workloads
from steelyard.catalog.workloads import SYNTHETIC
from steelyard.errors import UserError
from steelyard.inputs import case_inputs, data
from steelyard.inputs.data import DataRequest
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.catalog.workloads import Preset

PRESETS = [
    (name, preset)
    for name, workload in workloads.find().items()
    for preset in workload.presets.values()
    if preset.data and preset.data["name"] != SYNTHETIC
]


@pytest.mark.parametrize(("name", "preset"), PRESETS, ids=lambda value: getattr(value, "name", value))
def test_every_preset_gets_the_shapes_that_its_network_declares(name: str, preset: Preset) -> None:
    network = workloads.find()[name].network(preset)
    options = {key: value for key, value in preset.data.items() if key != "name"}
    prepared = {each.name: each for each in data.samples(DataRequest(preset.data["name"], None, options))}
    for declared in network.inputs:
        given = prepared[declared.name]
        assert (tuple(given.shape), given.dtype) == (tuple(declared.shape), declared.dtype), declared.name


def test_a_size_that_does_not_fit_the_data_is_refused_at_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_inputs.data, "check", lambda _: None)  # whether it can be had does not matter here
    plan = resolve.plan(Options(workloads=("tacotron2:ljspeech",), frameworks=("pytorch",), set=("mels=8",)))
    with pytest.raises(UserError) as raised:
        case_inputs.check(plan)
    assert str(raised.value) == (
        "tacotron2:ljspeech: the input 'mel' is mel float32 (80, 566) in the data 'ljspeech', but the network declares mel float32 "
        "(8, 566). The data gives text int32 (100,), text_length int32 (), mel float32 (80, 566), mel_length int32 (). Change the "
        "sizes, the [data] table of the preset, or the inputs of the network."
    )
