"""`steelyard run --port`: both sides are checked, and timed as contenders with their own steps or forward passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.plan.options import Options
from steelyard.ports import contenders, definition

pytestmark = pytest.mark.end_to_end

TOML = """
[sides.First]
framework = "fake"
[sides.fake]
framework = "fake"
[inputs.x]
shape = [6, 4]
[targets.y]
shape = [6]
dtype = "int64"
low = 0
high = 3
"""
SIDE = """
from numpy_model import *

def model():
    return NumpyModel([{dense}("a", 4, 3, 0)], lambda call, x: call("a", x){changed})
"""
STEP = """
def step(model):
    def one(batch):
        assert sorted(batch) == ["x", "y"]
        return np.float32(batch["x"].mean()) + np.zeros(())
    return one
"""
PREDICT = """
def predict(model):
    return lambda arguments: arguments["x"] @ np.ones((4, 3), np.float32)
"""
BRIEF = ("--protocol", "fixed:1+3", "--rounds", "2", "--no-guard", "--plain")


@pytest.fixture
def timed(port, tmp_path, monkeypatch):
    """A port with two equal sides that define step(); `timed(*arguments)` runs it."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    port.write("port.toml", TOML)
    sides = {"First": "dense", "fake": "dense_in_out"}

    def write(name, more=STEP, changed=""):
        port.write(f"{name}.py", SIDE.format(dense=sides[name], changed=changed) + more)

    def run(*arguments):
        argv = [sys.executable, "-m", "steelyard", "run", "--port", str(port.folder), *BRIEF, *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    for name in sides:
        write(name)
    run.write, run.runs, run.folder = write, tmp_path / "runs" / "runs", port.folder
    return run


def result(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_equal_sides_are_timed_with_their_own_steps_and_the_run_keeps_the_proof(timed):
    found = result(timed("--json"))
    (group,) = found["comparisons"]
    assert group["task"] == "training"
    sides = {each["title"]: (each["certificate"], each["certificate_by"]) for each in group["contenders"]}
    assert sides == dict.fromkeys(("First (Fake)", "fake (Fake)"), ("certified", "port check"))
    (run,) = (path for path in timed.runs.iterdir() if path.name != "ports" and path.is_dir())
    proofs = json.loads((run / "certificates.json").read_text())
    assert len(proofs) == 2
    for proof in proofs.values():
        assert proof["by"] == "port check"
        assert proof["sentence"].startswith("Equal. 1 pairs of modules")
        assert proof["parameters"] == 15
    page = (run / "report.html").read_text()
    assert "equal (port check)" in page
    assert "Training on one cached batch, the arrays of port.toml" in page
    assert f"steelyard run --port {timed.folder}" in json.loads((run / "run.json").read_text())["command"]


def test_steps_that_train_otherwise_than_each_other_are_noticed(timed):
    falling = """
losses = iter(np.linspace({0}, 1, 1000))

def step(model):
    return lambda batch: np.asarray(next(losses), np.float32)
"""
    timed.write("First", falling.format(2))
    timed.write("fake", falling.format(5))
    done = timed("--protocol", "fixed:5+40")
    assert "Their losses part, though they train on the same batches" in " ".join(done.stdout.split())


def test_forward_passes_are_timed_where_a_side_has_no_step(timed):
    timed.write("First", PREDICT)
    timed.write("fake", STEP + PREDICT)
    (group,) = result(timed("--json"))["comparisons"]
    assert group["task"] == "inference"
    assert all(each["speeds"]["cached"] for each in group["contenders"])


def test_models_that_differ_are_not_timed(timed):
    timed.write("fake", changed=" * 1.5")
    done = timed()
    assert done.returncode == 2
    assert "Not the same. They part" in done.stderr
    assert "--no-certify" in done.stderr
    assert not list(timed.runs.glob("*/run.json"))


def test_without_a_check_both_are_timed_and_get_no_verdict(timed):
    timed.write("fake", changed=" * 1.5")
    found = result(timed("--no-certify", "--json"))
    assert {each["certificate"] for each in found["comparisons"][0]["contenders"]} == {"none"}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (PREDICT.replace("predict", "other"), "How a numpy is run best is not known. Define predict(model)"),
        (STEP.replace("return one", "return 1"), "step() returned no function."),
        (STEP.replace("+ np.zeros(())", "").replace("np.float32(", "float("), "The step returned a float."),
        (STEP.replace('["x", "y"]', '["x"]'), "The step failed in line 9: AssertionError"),
    ],
    ids=["no predict", "no function", "no loss", "failing"],
)
def test_a_side_that_cannot_be_timed_is_named_with_a_sentence(timed, more, sentence):
    for name in ("First", "fake"):
        timed.write(name, more)
    done = timed()
    assert done.returncode != 0
    assert sentence in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-w", "bert"), "--workload cannot be given with it"),
        (("-f", "jax"), "--framework cannot be given with it"),
        (("--batch", "4"), "--batch cannot be given with it"),
        (("--resume", "latest"), "--resume cannot be given with it"),
        (("--on", "ray"), "--on cannot be given with it"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_the_port_decides_cannot_be_chosen(timed, arguments, sentence):
    done = timed(*arguments)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())


def test_another_model_or_another_input_is_another_case(timed):
    ids = []
    for change in (lambda: None, lambda: timed.write("First", STEP + "\n# changed\nx = 1\n"), lambda: None):
        change()
        (group,) = result(timed("--json"))["comparisons"]
        ids.append({each["title"]: each["id"] for each in group["contenders"]})
    assert ids[1] == ids[2]
    assert ids[0]["First (Fake)"] != ids[1]["First (Fake)"]


def test_the_page_recommends_no_command_that_a_port_does_not_know(timed):
    result(timed("--json"))
    (run,) = (path for path in timed.runs.iterdir() if path.name != "ports" and path.is_dir())
    page = (run / "report.html").read_text()
    assert "no epochs are trained" in page
    assert "-w port-" not in page


def test_an_array_that_was_changed_in_the_cache_is_written_again(port, tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    port.describe("[inputs.x]\nshape = [2, 3]\n")
    known = definition.read(port.folder)
    pythons = {side.name: Path(sys.executable) for side in known.sides}
    contenders.options_of(known, Options(), pythons, trains=False)
    (array,) = (tmp_path / "cache" / "ports" / "arrays").iterdir()
    before = array.read_bytes()
    array.write_bytes(b"other numbers")
    contenders.options_of(known, Options(), pythons, trains=False)
    assert array.read_bytes() == before
