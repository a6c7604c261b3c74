"""Certificates of every framework on the tiny preset of every workload, for two workloads in every mode.

Four of these certificates are slow tests, because their frameworks compile the networks for minutes. Further variants of the tiny presets,
which `steelyard certify --all` includes, would double the time; one of them is a slow test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.certificates.method import AGREEMENT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.conformance

# One workload runs with as many threads as cores, which is a user's default. The others run with one thread per process:
# certificates run two processes at a time, and on two cores this takes a third more time with two threads each.
EVERY_MODE_ALL_CORES = ("resnet18:tiny",)
EVERY_MODE_ONE_THREAD = ("lstm-imdb:tiny",)
EVERY_MODE = (*EVERY_MODE_ALL_CORES, *EVERY_MODE_ONE_THREAD)
FURTHER_PRESET = "lstm-imdb:tiny-bidirectional"
ONE_THREAD = ("--threads", "1")
DEFAULT_MODE = tuple(f"{name}:tiny" for name in workloads.find() if f"{name}:tiny" not in EVERY_MODE)
# These frameworks compile these networks, of many different convolutions, for one to four minutes on two cores.
COMPILED_FOR_MINUTES = ("googlenet:tiny", "inceptionv3:tiny")
COMPILING = ("jax", "mindspore")


def expected(groups: tuple[str, ...], every_mode: bool, *, infers: bool = False) -> list[str]:
    """Return the key of every cell that should be certified: of all frameworks that implement the workload."""
    known = workloads.find()
    return [
        f"{group}/{name}/{mode}"
        for group in groups
        for name, framework in frameworks.contenders().items()
        for workload in [known[group.partition(":")[0]]]
        if workload.implemented_by(name) and name not in workload.unsupported
        for mode in (framework.modes if every_mode else [framework.default_mode])
        if f"{name}/{mode}" not in workload.unsupported
        and not (infers and f"{mode} with none" in framework.unsupported)
    ]


def certify(runs: Path, groups: tuple[str, ...], *more: str) -> dict[str, dict[str, Any]]:
    """Certify with the command line; returns {cell key: certificate}."""
    command = [sys.executable, "-m", "steelyard", "certify", "--json", "--plain", "--runs", str(runs), *more]
    for group in groups:
        command += ["-w", group]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def every_mode() -> list[str]:
    """Return the options that choose all modes of all frameworks."""
    modes = [f"{name}={','.join(framework.modes)}" for name, framework in frameworks.contenders().items()]
    return [word for mode in modes for word in ("--mode", mode)]


@pytest.fixture(scope="module")
def in_every_mode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The certificates of two workloads in all modes."""
    on_all_cores = certify(tmp_path_factory.mktemp("runs"), EVERY_MODE_ALL_CORES, *every_mode())
    return on_all_cores | certify(tmp_path_factory.mktemp("runs"), EVERY_MODE_ONE_THREAD, *every_mode(), *ONE_THREAD)


@pytest.fixture(scope="module")
def in_default_mode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The certificates of all other workloads, without those that take minutes."""
    quick = tuple(group for group in DEFAULT_MODE if group not in COMPILED_FOR_MINUTES)
    others = [word for name in frameworks.contenders() if name not in COMPILING for word in ("-f", name)]
    found = certify(tmp_path_factory.mktemp("runs"), quick, *ONE_THREAD)
    return found | certify(tmp_path_factory.mktemp("runs"), COMPILED_FOR_MINUTES, *others, *ONE_THREAD)


@pytest.mark.parametrize("cell", expected(EVERY_MODE, every_mode=True))
def test_a_cell_is_certified_in_every_mode(in_every_mode: dict[str, dict[str, Any]], cell: str) -> None:
    assert cell in in_every_mode
    assert in_every_mode[cell]["passed"], in_every_mode[cell]["sentence"]


@pytest.mark.parametrize("group", EVERY_MODE)
def test_two_frameworks_agree_in_float64(in_every_mode: dict[str, dict[str, Any]], group: str) -> None:
    """Every certificate depends on this agreement. The limit is a hundredth of the general one, as a margin for other workloads."""
    found = [certificate for cell, certificate in in_every_mode.items() if cell.startswith(f"{group}/")]
    assert found
    for certificate in found:
        assert len(certificate["references"]) == 2
        assert certificate["agreement"] < AGREEMENT / 100, certificate["sentence"]


@pytest.mark.slow
def test_a_further_preset_is_certified_in_every_mode(tmp_path: Path) -> None:
    found = certify(tmp_path, (FURTHER_PRESET,), *every_mode(), *ONE_THREAD)
    assert found.keys() == set(expected((FURTHER_PRESET,), every_mode=True))
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "options", "count"),
    [
        ("lstm-imdb:tiny", ("--knob", "lstm=cell,loop"), 9),
        (FURTHER_PRESET, ("--knob", "lstm=cell,loop"), 9),
        ("lstm-imdb:tiny", ("--knob", "embedding=sparse", "--optimizer", "plain-sgd"), 3),
        ("lstm-imdb:tiny", ("--knob", "onednn=false"), 5),
        ("resnet18:tiny", ("--knob", "onednn=false"), 5),
    ],
)
def test_the_values_of_knobs_are_certified(tmp_path: Path, group: str, options: tuple[str, ...], count: int) -> None:
    found = certify(tmp_path, (group,), *options, *ONE_THREAD)
    assert len(found) == count
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("group", "multiple"), [("deepspeech2:tiny-lengths", 16), ("tacotron2:tiny-lengths", 8)])
def test_batches_of_their_own_length_are_certified_in_every_framework(
    tmp_path: Path, group: str, multiple: int
) -> None:
    """The multiple keeps the number of shapes small, for each of which some frameworks compile for seconds."""
    found = certify(tmp_path, (group,), "--set", f"multiple={multiple}", *ONE_THREAD)
    assert found.keys() == set(expected((group,), every_mode=False))
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


def takes_minutes(cell: str) -> bool:
    """Return whether a framework compiles the network for minutes."""
    group, framework, _ = cell.split("/")
    return group in COMPILED_FOR_MINUTES and framework in COMPILING


@pytest.mark.parametrize("cell", [cell for cell in expected(DEFAULT_MODE, every_mode=False) if not takes_minutes(cell)])
def test_a_cell_is_certified(in_default_mode: dict[str, dict[str, Any]], cell: str) -> None:
    assert cell in in_default_mode
    assert in_default_mode[cell]["passed"], in_default_mode[cell]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("group", COMPILED_FOR_MINUTES)
def test_networks_that_take_minutes_to_compile_are_certified(tmp_path: Path, group: str) -> None:
    found = certify(tmp_path, (group,), *(word for name in COMPILING for word in ("-f", name)), *ONE_THREAD)
    assert found.keys() == {cell for cell in expected((group,), every_mode=False) if takes_minutes(cell)}
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


def test_the_reference_implementation_of_lamb_is_certified_in_every_framework(tmp_path: Path) -> None:
    found = certify(
        tmp_path, ("bert:tiny",), "--optimizer", "lamb", "--optimizer-implementation", "reference", *ONE_THREAD
    )
    assert len(found) == len(expected(("bert:tiny",), every_mode=False)) > 1
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


@pytest.mark.slow
def test_references_agree_without_the_preferred_one(tmp_path: Path) -> None:
    """Adam with bias corrections in float32, and CTC, for which a third framework's float64 may be missing or inexact."""
    found = certify(tmp_path, ("deepspeech2:tiny",), "-f", "jax", "-f", "tensorflow", *ONE_THREAD)
    assert len(found) == 2
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


def test_the_inference_of_a_network_with_batch_norms_is_certified_in_every_framework(tmp_path: Path) -> None:
    found = certify(tmp_path, ("resnet50:tiny",), "--task", "inference", *ONE_THREAD)
    assert found.keys() == set(expected(("resnet50:tiny",), every_mode=False))
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("group", [f"{name}:tiny" for name in workloads.find()])
def test_the_inference_of_every_network_is_certified_in_every_mode(tmp_path: Path, group: str) -> None:
    found = certify(tmp_path, (group,), "--task", "inference", *every_mode(), *ONE_THREAD)
    assert found.keys() == set(expected((group,), every_mode=True, infers=True))
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


def test_at_least_46_of_the_50_cells_are_supported() -> None:
    groups = tuple(f"{name}:tiny" for name in workloads.find())
    assert len(groups) == 10
    assert len(expected(groups, every_mode=False)) >= 46
