"""Weights that a user gives: the worked example of the documentation, what is shown of them, and runs that must not be mixed."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from finished_runs import LINE

if TYPE_CHECKING:
    from finished_runs import CommandLine, Steelyard

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "own-workload.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Two checkpoints of your own: a worked example")[2].partition("\n## ")[0]
COMMANDS = [line for line in SECTION.splitlines() if line.startswith("steelyard ")]
# The network of the template, for the scripted frameworks.
IMPLEMENTATION = """
import numpy as np


def forward(parameters, batch):
    flat = batch["image"].reshape(len(batch["image"]), -1)
    first = np.maximum(flat @ parameters["first.weight"].T + parameters["first.bias"], 0)
    return {"logits": first @ parameters["head.weight"].T + parameters["head.bias"], "first": first}


def backward(parameters, batch, outputs):
    logits, label, first = outputs["logits"], batch["label"], outputs["first"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(label))
    loss = -(shifted - log_sum)[rows, label].mean()
    slope = np.exp(shifted - log_sum)
    slope[rows, label] -= 1
    slope /= len(label)
    inner = (slope @ parameters["head.weight"]) * (first > 0)
    flat = batch["image"].reshape(len(label), -1)
    return loss, {
        "first.weight": inner.T @ flat,
        "first.bias": inner.sum(axis=0),
        "head.weight": slope.T @ first,
        "head.bias": slope.sum(axis=0),
    }
"""
# Sizes of the preset `tiny` of the template.
SHAPES = {"first.weight": (16, 64), "first.bias": (16,), "head.weight": (10, 16), "head.bias": (10,)}

pytestmark = pytest.mark.end_to_end


def trained(shapes: dict[str, tuple[int, ...]] = SHAPES, seed: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=shape, scale=0.3).astype("f4") for name, shape in shapes.items()}


def saved(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> Path:
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def test_the_documented_commands_certify_both_checkpoints(
    tmp_path: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    mine, arrays = tmp_path / "mine", trained()
    # PyTorch's state dict stands for the made-up format of the scripted framework, which its own process reads.
    own = saved(tmp_path / "trained.fake", {name.replace(".", "/"): array.T for name, array in arrays.items()})
    plain = saved(tmp_path / "trained.npz", arrays)
    places = {
        "mine": str(mine),
        "mine:digits": "mine:tiny",
        "pytorch": "fake",
        "jax": "dummy",
        "trained.pt": str(own),
        "trained.npz": str(plain),
    }
    new, *others = ([places.get(word, word) for word in line.split()[1:]] for line in COMMANDS)
    new = ["new", "workload", "mine", "--into", str(mine), "-f", "pytorch", "-f", "jax"]
    assert COMMANDS[0] == "steelyard new workload mine --into mine -f pytorch -f jax"
    assert steelyard(*new).returncode == 0
    for name in ("fake", "dummy"):
        (mine / "mine" / f"{name}.py").write_text(IMPLEMENTATION)
    of_framework, of_arrays, run = others
    for line in (of_framework, of_arrays):
        done = steelyard(*line, "--plain", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found) == 2 and all(each["passed"] for each in found.values())
    quick = ("--no-guard", "--plain", "--rounds", "2", "--knob", "fake.step_us=9000", "--knob", "dummy.step_us=20000")
    done = steelyard(*run, *quick, "--json")
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256(plain.read_bytes()).hexdigest()[:16]
    assert json.loads(done.stdout)["comparisons"][0]["initial_weights"] == f"trained.npz, SHA-256 {digest}"


def test_the_documented_refusal_is_the_reported_one(tmp_path: Path, cli: CommandLine) -> None:
    assert cli("new", "workload", "mine", "--into", str(tmp_path / "mine"), "-f", "pytorch", "-f", "jax")[0] == 0
    arrays = trained({"first.weight": (1024, 64), "first.bias": (64,), "head.weight": (10, 64), "head.bias": (10,)})
    path = saved(tmp_path / "trained.npz", arrays)
    line = ["run", "--workloads", str(tmp_path / "mine"), "-w", "mine:digits", "-f", "pytorch", "--dry-run"]
    message = cli.error(*line, "--weights", str(path))
    (documented,) = re.findall(r"^> (trained\.npz .*)$", SECTION, re.MULTILINE)
    assert message == f"steelyard: {documented}"


LINE_SHAPES = {"head.weight": (3, 8), "head.bias": (3,)}
RUN = ("run", *LINE, "-f", "fake", "-f", "dummy", "--rounds", "2", "--knob", "dummy.step_us=12000")


def test_a_run_says_which_weights_it_has_and_is_never_taken_for_one_with_others(
    tmp_path: Path, data_folder: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    folder = tmp_path / "private"
    folder.mkdir()
    path = saved(folder / "epoch3.npz", trained(LINE_SHAPES))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    plan = steelyard(*RUN, "--weights", str(path), "--dry-run")
    assert f"Initial weights: epoch3.npz, SHA-256 {digest}." in plan.stdout
    planned = json.loads(steelyard(*RUN, "--weights", str(path), "--dry-run", "--json").stdout)
    assert planned["weights"] == f"epoch3.npz, SHA-256 {digest}"
    drawn = steelyard(*RUN, "--json")
    assert "initial_weights" not in json.loads(drawn.stdout)["comparisons"][0]
    given = steelyard(*RUN, "--weights", str(path))
    assert given.returncode == 0, given.stderr
    assert f"Initial weights: epoch3.npz, SHA-256 {digest}." in " ".join(given.stdout.split())
    first, second = sorted(data_folder.glob("runs/*/run.json"), key=lambda each: each.stat().st_mtime)
    page = (second.parent / "report.html").read_text(encoding="utf-8")
    assert f"epoch3.npz, SHA-256 {digest}" in page
    assert "epoch3" not in (first.parent / "report.html").read_text(encoding="utf-8")
    record = json.loads(second.read_text(encoding="utf-8"))
    cases = [each["case"] for each in record["plan"]["groups"][0]["variants"]]
    assert {each["weights"] for each in cases} == {digest}
    compared = steelyard("compare", first.parent.name, second.parent.name)
    assert compared.returncode == 2
    assert f"initial weights (drawn before, file {digest} after)" in compared.stderr
    history = json.loads(steelyard("history", "--json").stdout)
    # two contenders, and a line of its own for each with other weights
    assert sorted(line["contender"].partition("/")[0] for line in history) == ["dummy", "dummy", "fake", "fake"]
    assert all(len(line["runs"]) == 1 for line in history)


def test_a_run_goes_on_with_its_own_file_only(tmp_path: Path, steelyard: Steelyard, data_folder: Path) -> None:
    path = saved(tmp_path / "w.npz", trained(LINE_SHAPES))
    done = steelyard(*RUN, "--weights", str(path), "--json")
    name = Path(json.loads(done.stdout)["folder"]).name
    other = saved(tmp_path / "other.npz", trained(LINE_SHAPES, 2))
    refused = steelyard("run", "--resume", name, "--weights", str(other))
    assert refused.returncode == 2
    assert (
        "--resume continues a run with the options it was started with, so --weights cannot be given" in refused.stderr
    )
    saved(path, trained(LINE_SHAPES, 2))
    changed = steelyard("run", "--resume", name, "--plain")
    assert changed.returncode == 2
    assert "w.npz has changed since this run began, so it cannot be continued. Start a new run." in changed.stderr
    path.unlink()
    again = steelyard("run", "--resume", name, "--plain", "--json")  # the cache has what was read
    assert again.returncode == 0, again.stderr
