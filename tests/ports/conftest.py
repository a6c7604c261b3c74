"""Folders of ports whose sides are small models in NumPy, checked through the command line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from forked_command import Forked

HERE = Path(__file__).parent
# A transformer block on tokens. Arguments of both sides, so that a test plants one difference in the second.
BLOCK = """
from numpy_model import *

def model(epsilon={epsilon!r}, approximate={approximate!r}, divisor={divisor!r}, causal={causal!r}, linear={linear}, seed={seed!r}):
    modules = [embedding("table", 20, 12, seed)]
    for name in ("query", "key", "value", "mixed"):
        modules.append(linear(name, 12, 12, seed + hash(name) % 1 + len(name) * 7 + ord(name[0])))
    modules += [layer_norm("norm", 12, epsilon), linear("up", 12, 24, seed + 5), linear("down", 24, 12, seed + 6)]

    def run(call, tokens):
        x = call("table", tokens) * 0.05
        q, k, v = (call(name, x) for name in ("query", "key", "value"))
        x = x + call("mixed", attention(q, k, v, 3, divisor, causal))
        h = call("up", call("norm", x * 0.01))
        return x + call("down", gelu(h, approximate))

    return NumpyModel(modules, run)
"""
DEFAULTS = {
    "epsilon": 1e-5,
    "approximate": False,
    "divisor": 2.0,
    "causal": False,
    "linear": "dense",
    "seed": 1,
}
SIDES = """
[sides.first]
framework = "fake"
[sides.second]
framework = "fake"
"""
TOKENS = """
[inputs.tokens]
shape = [2, 5]
dtype = "int64"
low = 0
high = 20
"""


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def causes(self):
        return [each["cause"] for each in self.json["findings"]]


class PortFolder:
    """A folder of a port. `run`: runs `steelyard port` with arguments."""

    def __init__(self, folder: Path, run: Callable[..., Answer]) -> None:
        self.folder, self.run = folder, run
        folder.mkdir()
        shutil.copyfile(HERE / "numpy_model.py", folder / "numpy_model.py")
        self.describe(TOKENS)
        self.block("first")
        self.block("second", linear="dense_in_out")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def describe(self, arrays: str) -> None:
        """Write port.toml: two sides of the scripted framework, and the tables of inputs and targets that are given."""
        self.write("port.toml", SIDES + arrays)

    def block(self, side: str, **changed) -> None:
        self.write(f"{side}.py", BLOCK.format(**(DEFAULTS | changed)))

    def check(self, *more: str, json: bool = True) -> Answer:
        return self.run("check", str(self.folder), *(["--json"] if json else []), *more)


@pytest.fixture(scope="session")
def steelyard_port() -> Iterator[Callable[..., Answer]]:
    """Run `steelyard port` in a process that is forked from one that has imported steelyard: `steelyard_port("check", folder)`."""
    forked = Forked(os.environ)

    def run(*arguments: str) -> Answer:
        done = forked.run(["port", *arguments], os.environ)
        return Answer(done.returncode, done.stdout, done.stderr)

    yield run
    forked.close()


@pytest.fixture
def port(tmp_path, monkeypatch, steelyard_port):
    monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / "runs"))
    return PortFolder(tmp_path / "shop", steelyard_port)
