"""Certificates of every framework on the tiny preset of every workload, for two workloads in every mode.

Four of these certificates are slow tests, because their frameworks compile the networks for minutes. Further variants of the tiny presets,
which `steelyard certify --all` includes, would double the time; one of them is a slow test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import decides
import pytest
from decides import Sources
from proved import UNRECORDED

from steelyard.catalog import frameworks, workloads
from steelyard.certificates.method import AGREEMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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


def takes_minutes(cell: str) -> bool:
    """Return whether a framework compiles the network for minutes."""
    group, framework, _ = cell.split("/")
    return group in COMPILED_FOR_MINUTES and framework in COMPILING


def references(group: str) -> tuple[str, ...]:
    """Return the frameworks that are the reference of a group's cells, where all of those that do not compile for minutes are asked for."""
    able = {cell.split("/")[1] for cell in expected((group,), every_mode=False) if not takes_minutes(cell)}
    known = frameworks.contenders()
    return tuple(sorted((name for name in able if known[name].reference), key=lambda name: known[name].reference)[:2])


def decided(group: str, names: tuple[str, ...] = ()) -> Sources:
    """Return what decides the certificates of a group in these frameworks."""
    involved = tuple(sorted({*names, *references(group)}))
    return Sources(group, involved, (group.partition(":")[0],), computing=True, modules=decides.CERTIFY)


def decided_cell(cell: str) -> Sources:
    group, framework, _ = cell.split("/")
    return decided(group, (framework,))


def decided_group(group: str) -> Sources:
    return decided(group)


def decided_everywhere(group: str) -> Sources:
    return decided(group, tuple(frameworks.contenders()))


def selected(request: pytest.FixtureRequest, fixture: str) -> dict[str, set[str]]:
    """Return {group: frameworks} of the tests with a fixture that were selected, with the references of each group."""
    found: dict[str, set[str]] = {}
    for item in request.session.items:
        if fixture in getattr(item, "fixturenames", ()):
            group, _, rest = (item.callspec.params.get("cell") or item.callspec.params["group"]).partition("/")
            found.setdefault(group, {*references(group)}).update({rest.partition("/")[0]} - {""})
    return found


def certify_selected(
    runs: Path, chosen: dict[str, set[str]], *more: str, groups: tuple[str, ...], modes: bool = False
) -> dict[str, dict[str, Any]]:
    """Certify these groups in the frameworks that are selected, in all `modes` of these or in the default ones.

    Groups that leave out the same frameworks share a command.
    """
    alike: dict[frozenset[str], list[str]] = {}
    for group in groups:
        if group in chosen:
            left_out = {cell.split("/")[1] for cell in expected((group,), every_mode=False)} - chosen[group]
            alike.setdefault(frozenset(left_out), []).append(group)
    found: dict[str, dict[str, Any]] = {}
    for number, (left_out, together) in enumerate(alike.items()):
        names = [name for name in frameworks.contenders() if name not in left_out]
        options = [word for name in names for word in ("-f", name)] + (every_mode(names) if modes else [])
        found |= certify(runs / str(number), tuple(together), *options, *more)
    return found


def every_mode(names: Iterable[str] = tuple(frameworks.contenders())) -> list[str]:
    """Return the options that choose all modes of these frameworks, or of all."""
    modes = [f"{name}={','.join(frameworks.contenders()[name].modes)}" for name in names]
    return [word for mode in modes for word in ("--mode", mode)]


@pytest.fixture(scope="module")
def in_every_mode(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The certificates of two workloads in all modes of the selected frameworks."""
    chosen, folder = selected(request, "in_every_mode"), tmp_path_factory.mktemp("runs")
    on_all_cores = certify_selected(folder / "all-cores", chosen, groups=EVERY_MODE_ALL_CORES, modes=True)
    one_thread = certify_selected(folder, chosen, *ONE_THREAD, groups=EVERY_MODE_ONE_THREAD, modes=True)
    return on_all_cores | one_thread


@pytest.fixture(scope="module")
def in_default_mode(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The certificates of all other workloads in the selected frameworks, without those that take minutes."""
    chosen = selected(request, "in_default_mode")
    return certify_selected(tmp_path_factory.mktemp("runs"), chosen, *ONE_THREAD, groups=DEFAULT_MODE)


def rests_on(certificate: dict[str, Any], group: str, record_property: Callable[[str, object], None]) -> None:
    """Keep a certificate with another reference, such as an arbiter, from the record: its key has not what decides that."""
    known = frameworks.contenders()
    missing = [
        each
        for each in certificate["references"]
        if not each.startswith(tuple(known[name].title for name in references(group)))
    ]
    if missing:
        record_property(UNRECORDED, f"{missing[0]} was a reference")


@pytest.mark.decided(by=decided_cell)
@pytest.mark.parametrize("cell", expected(EVERY_MODE, every_mode=True))
def test_a_cell_is_certified_in_every_mode(
    in_every_mode: dict[str, dict[str, Any]], cell: str, record_property: Callable[[str, object], None]
) -> None:
    assert cell in in_every_mode
    assert in_every_mode[cell]["passed"], in_every_mode[cell]["sentence"]
    rests_on(in_every_mode[cell], cell.partition("/")[0], record_property)


@pytest.mark.decided(by=decided_group)
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


@pytest.mark.decided(by=decided_cell)
@pytest.mark.parametrize("cell", [cell for cell in expected(DEFAULT_MODE, every_mode=False) if not takes_minutes(cell)])
def test_a_cell_is_certified(
    in_default_mode: dict[str, dict[str, Any]], cell: str, record_property: Callable[[str, object], None]
) -> None:
    assert cell in in_default_mode
    assert in_default_mode[cell]["passed"], in_default_mode[cell]["sentence"]
    rests_on(in_default_mode[cell], cell.partition("/")[0], record_property)


@pytest.mark.slow
@pytest.mark.parametrize("group", COMPILED_FOR_MINUTES)
def test_networks_that_take_minutes_to_compile_are_certified(tmp_path: Path, group: str) -> None:
    found = certify(tmp_path, (group,), *(word for name in COMPILING for word in ("-f", name)), *ONE_THREAD)
    assert found.keys() == {cell for cell in expected((group,), every_mode=False) if takes_minutes(cell)}
    assert {cell: certificate["sentence"] for cell, certificate in found.items() if not certificate["passed"]} == {}


@pytest.mark.decided(by=lambda: decided_everywhere("bert:tiny"))
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


@pytest.mark.decided(by=lambda: decided_everywhere("resnet50:tiny"))
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
