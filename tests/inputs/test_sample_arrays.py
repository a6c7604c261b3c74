"""The inputs of a network are compared with the arrays of its data before anything is prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.inputs import data
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


def test_a_network_on_other_data_is_refused_at_planning(tmp_path: Path) -> None:
    from steelyard.inputs import case_inputs
    from steelyard.plan import resolve
    from steelyard.plan.options import Options

    line = Path(__file__).resolve().parents[1] / "workloads" / "line"
    folder = tmp_path / "line"
    folder.mkdir()
    for path in line.glob("*.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    spec = folder / "spec.toml"
    spec.write_text(spec.read_text() + '\n[presets.small.data]\nname = "wikitext-103-raw"\n')
    plan = resolve.plan(Options(workloads=("line:small",), workload_folders=(str(tmp_path),), frameworks=("fake",)))
    with pytest.raises(UserError, match=r"line:small: the input 'point' is missing in the data 'wikitext-103-raw'"):
        case_inputs.check(plan)
