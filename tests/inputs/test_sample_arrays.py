"""The inputs of a network are compared with the arrays of its data before anything is prepared."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.inputs import data
from steelyard.inputs.data.options import OPTIONS_OF_FORM
from steelyard.inputs.data.sample_arrays import check_inputs
from steelyard_worker.network import Input

PRESETS = [
    (name, preset)
    for name, workload in workloads.find().items()
    for preset in workload.presets
    if workload.presets[preset].reads_data
]


def given(name: str, **options: Any) -> tuple[Input, ...]:
    return data.samples(data.DataRequest(name, None, options))


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_every_preset_reads_what_its_data_gives(name: str, preset: str) -> None:
    workload = workloads.find()[name]
    chosen = workload.preset(preset)
    options = {key: value for key, value in chosen.data.items() if key != "name"}
    found = given(chosen.data["name"], **options)
    assert found
    check_inputs(workload.network(chosen).inputs, found, chosen.data["name"], f"{name}:{preset}")


TEXT = (Input("tokens", (64,), "int32", 100), Input("targets", (64,), "int32", 100))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (TEXT, ""),
        ((TEXT[0],), ""),
        ((Input("tokens", (32,), "int32", 100),), "the input 'tokens' is tokens int32 (64,)"),
        ((Input("tokens", (64,), "int64", 100),), "the network declares tokens int64 (64,)"),
        ((Input("words", (64,), "int32", 100),), "the input 'words' is missing in the data 'text'"),
        ((Input("tokens", (64,), "int32", 99),), "the input 'tokens' has values below 100"),
    ],
)
def test_the_first_input_that_differs_is_named(inputs: tuple[Input, ...], message: str) -> None:
    arrays = given("text", length=64, vocabulary=100)
    if not message:
        check_inputs(inputs, arrays, "text", "mine:tiny")
        return
    with pytest.raises(UserError) as refused:
        check_inputs(inputs, arrays, "text", "mine:tiny")
    assert message in str(refused.value)
    assert "The data gives tokens int32 (64,), targets int32 (64,)." in str(refused.value)


def test_pictures_have_the_shape_that_the_options_give() -> None:
    (image, _) = given("cifar10", pad_to=40)
    assert image.shape == (3, 40, 40)
    (image, _) = given("imagenet", resize=256, crop=224)
    assert image.shape == (3, 224, 224)


DOCS = Path(__file__).resolve().parents[2] / "docs" / "own-workload.md"
ROWS = [line.split(" | ") for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
TABLE = {
    name: (inputs, options)
    for cells in ROWS
    if len(cells) == 3
    for names, inputs, options in [cells]
    for name in re.findall(r"`([^`]+)`", names)
}


@pytest.mark.parametrize("name", [known.name for known in data.list_data()])
def test_the_table_in_the_documentation_has_the_inputs_and_options_of_every_data_set(name: str) -> None:
    inputs, options = TABLE[name]
    known = [field.name for field in fields(OPTIONS_OF_FORM[data.find(name).form])]
    assert sorted(re.findall(r"`([^`]+)`", options)) == sorted(set(known) - {"train_limit", "test_limit"})
    arrays = given(name, **({"resize": 32, "crop": 32} if name == "imagenet" else {}))
    if arrays:
        assert re.findall(r"`([^`]+)`", inputs) == [each.name for each in arrays]
        shown = re.findall(r"(int32|float32) \(([^)]*)\)", inputs)
        assert {(dtype, len([part for part in shape.split(",") if part.strip()])) for dtype, shape in shown} == {
            (each.dtype, len(each.shape)) for each in arrays
        }
