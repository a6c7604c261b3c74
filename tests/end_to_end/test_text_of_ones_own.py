"""The worked example of the documentation: a network on a text file, from the copy of an example to a verdict."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from finished_runs import Steelyard

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "own-workload.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### A network on text: a worked example")[2].partition("\n## ")[0]
COMMANDS = [line for line in SECTION.splitlines() if line.startswith("steelyard ")]
SPEC = Path(__file__).resolve().parents[2] / "examples" / "gpt" / "spec.toml"
# The scripted frameworks have no transformer: the next token depends on this one alone. Inputs, data and metric are the example's.
TABLE = """

usual = describe


def describe(sizes: dict[str, Any]) -> Network:
    from dataclasses import replace

    table = Parameter("table", (sizes["vocabulary"], sizes["vocabulary"]), "dense", "trunc_normal:0.02")
    return replace(usual(sizes), parameters=(table,), probes=(), macs=sizes["length"] * sizes["vocabulary"])
"""
IMPLEMENTATION = """
import numpy as np


def forward(parameters, batch):
    return {"logits": parameters["table"][batch["tokens"]]}


def backward(parameters, batch, outputs):
    logits, targets = outputs["logits"], batch["targets"]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    loss = -np.take_along_axis(shifted - log_sum, targets[..., None].astype(int), -1).mean()
    slope = np.exp(shifted - log_sum)
    np.put_along_axis(slope, targets[..., None].astype(int), np.take_along_axis(slope, targets[..., None].astype(int), -1) - 1, -1)
    gradient = np.zeros_like(parameters["table"])
    np.add.at(gradient, batch["tokens"], slope / targets.size)
    return loss, {"table": gradient}
"""

pytestmark = pytest.mark.end_to_end


def command(text: str, mine: Path, folder: Path) -> list[str]:
    """Return a line of the documentation as arguments, with folders of this test and the scripted frameworks."""
    places = {"mine": str(mine), "DIR": str(folder), "pytorch": "fake", "jax": "dummy"}
    return [places.get(word, word) for word in text.split()[1:]]


def test_the_documented_commands_lead_to_a_verdict(
    tmp_path: Path, data_folder: Path, steelyard: Steelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    mine, folder = tmp_path / "mine", tmp_path / "text"
    folder.mkdir()
    (folder / "book.txt").write_text("the cat sat on the mat.\n" * 300 + "\u2603", encoding="utf-8")
    (folder / "notes.md").write_text("not read")
    new, sizes, certify, plan, run = (command(line, mine, folder) for line in COMMANDS)
    assert steelyard(*new).returncode == 0
    for name in ("fake", "dummy"):
        (mine / "mygpt" / f"{name}.py").write_text(IMPLEMENTATION)
    network = mine / "mygpt" / "network.py"
    network.write_text(network.read_text(encoding="utf-8") + TABLE)
    assert "vocabulary" in steelyard(*sizes).stdout
    quick = ("--no-guard", "--plain")
    # few steps of a scripted clock
    short = ("--batch", "8", "--protocol", "fixed:1+3:pipeline", "--rounds", "2", "--knob", "fake.step_us=9000")
    slower = ("--knob", "dummy.step_us=20000")
    certified = steelyard(*certify, "-f", "fake", "-f", "dummy", "--plain")
    assert certified.returncode == 0, certified.stderr
    planned = steelyard(*plan, "--plain")
    # 7,201 characters, of which the last tenth is for testing; samples of 64
    assert "Data text. Samples: 101 for training and 11 for testing." in planned.stdout
    assert "files that are not part of the layout: 1 (notes.md)" in planned.stdout
    done = steelyard(*run, *quick, *short, *slower)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "your text: 101 training and 11 test samples." in shown
    assert "characters outside of the vocabulary, which become id 0: 1." in shown
    assert "Fake is the fastest." in shown and "faster than Dummy" in shown
    (page,) = data_folder.glob("runs/*/report.html")
    assert "perplexity" in page.read_text(encoding="utf-8")


def test_the_documented_data_table_is_that_of_the_example() -> None:
    (table,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)
    assert table in SPEC.read_text(encoding="utf-8")
    (line,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    assert line in SPEC.with_name("network.py").read_text(encoding="utf-8").replace("    inputs", "inputs")
