"""User-defined workloads: the template of `steelyard new workload`, and the example of the documentation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import decides
import pytest
from decides import Sources

from steelyard.catalog import frameworks, scaffold

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = Path(__file__).parent / "own"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "own-workload.md"


def decided(sample: str, *names: str) -> Sources:
    """Return what decides the certificates of a workload outside the worker; PyTorch and TensorFlow or JAX are references."""
    named = names or tuple(frameworks.contenders())
    files = ("src/steelyard_worker/template", "examples", "docs/own-workload.md", "tests/conformance/own")
    return Sources(sample, named, computing=True, modules=decides.CERTIFY, files=files)


def certify(runs: Path, folder: Path, *chosen: str) -> dict[str, dict]:
    """Certify with the command line; returns {cell key: certificate}."""
    command = [sys.executable, "-m", "steelyard", "certify", "--json", "--plain", "--runs", str(runs)]
    done = subprocess.run([*command, "--workloads", str(folder), *chosen], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.decided(by=lambda: decided("new"))
def test_a_new_workload_is_certified_unchanged_in_every_framework(tmp_path: Path) -> None:
    every = list(frameworks.contenders())
    scaffold.write("mine", tmp_path / "own", every)
    found = certify(tmp_path / "runs", tmp_path / "own", "-w", "mine:tiny")
    assert len(found) == len(every) > 1
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []


GROUPS = """\
weight_decay = 0.01
decay = ["dense"]
groups = [{ tensors = ["head.*"], rate = 0.1, decay = 0 }, { tensors = ["first.bias"], rate = 2 }]
"""


@pytest.mark.decided(by=lambda: decided("groups"))
@pytest.mark.parametrize("implementation", ["native", "reference"])
def test_groups_of_tensors_are_certified_in_every_framework(implementation: str, tmp_path: Path) -> None:
    every = list(frameworks.contenders())
    scaffold.write("mine", tmp_path / "own", every)
    spec = tmp_path / "own" / "mine" / "spec.toml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("momentum = 0.9\n", f"momentum = 0.9\n{GROUPS}"))
    options = ("--optimizer-implementation", implementation)
    found = certify(tmp_path / "runs", tmp_path / "own", "-w", "mine:tiny", *options)
    assert len(found) == len(every) > 1
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []
    assert {each["rule_steps"] for each in found.values()} == {200}


@pytest.mark.decided(by=lambda: decided("parts"))
def test_batches_in_parts_are_certified_in_every_framework(tmp_path: Path) -> None:
    every = list(frameworks.contenders())
    scaffold.write("mine", tmp_path / "own", every)
    found = certify(tmp_path / "runs", tmp_path / "own", "-w", "mine:tiny", "--accumulate", "4")
    assert len(found) == len(every) > 1
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []
    assert {each["settings"]["knobs"]["accumulate"] for each in found.values()} == {4}


@pytest.mark.decided(by=lambda: decided("example", "pytorch", "jax"))
def test_the_example_is_certified(tmp_path: Path) -> None:
    found = certify(tmp_path / "runs", EXAMPLES, "-w", "vit:tiny", "-f", "pytorch", "-f", "jax")
    assert len(found) == 2
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []


@pytest.mark.decided(by=lambda: decided("text", "pytorch", "jax"))
def test_the_example_on_text_is_certified_on_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "book.txt").write_text("A small text, line by line.\n" * 40, encoding="utf-8")
    sizes = ("--set", "length=8,width=16,hidden=24,heads=2,vocabulary=20,batch=4", "--data", str(tmp_path / "text"))
    found = certify(tmp_path / "runs", EXAMPLES, "-w", "gpt:text", *sizes, "-f", "pytorch", "-f", "jax")
    assert len(found) == 2
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []


@pytest.mark.decided(by=lambda: decided("message", "pytorch", "tensorflow", "jax"))
def test_the_documented_error_message_is_the_reported_one(tmp_path: Path) -> None:
    folder = tmp_path / "own" / "vit"
    folder.mkdir(parents=True)
    for path in (EXAMPLES / "vit").glob("*.*"):
        (folder / path.name).write_text(
            path.read_text(encoding="utf-8").replace(", approximate=False", ""), encoding="utf-8"
        )
    found = certify(tmp_path / "runs", folder.parent, "-w", "vit:tiny", "-f", "jax")
    (certificate,) = found.values()
    assert not certificate["passed"]
    for sentence in (
        'The first difference is in the output "logits": relative error 1.8e-04, ',
        'The first inner tensor that differs is "block0": relative error 8.9e-05; "patch", before it, matches.',
    ):
        assert sentence in certificate["sentence"]
        assert sentence in DOCUMENTATION.read_text(encoding="utf-8")


@pytest.mark.decided(by=lambda: decided("tied", "pytorch", "jax", "mindspore", "tensorflow"))
def test_a_tensor_that_two_modules_share_is_listed_once(tmp_path: Path) -> None:
    every = [word for name in ("pytorch", "jax", "mindspore") for word in ("-f", name)]
    found = certify(tmp_path / "runs", OWN, "-w", "tied-table:tiny", *every)
    assert len(found) == 3
    assert [each["sentence"] for each in found.values() if not each["passed"]] == []
