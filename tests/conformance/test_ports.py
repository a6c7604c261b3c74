"""The page docs/port.md, followed with real frameworks: a PyTorch network and its port to Keras, and one to plain JAX."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from decides import Sources

from steelyard.ports import scaffold

SIDES = Path(__file__).parents[1] / "ports" / "sides"

PAGE = Path(__file__).parents[2] / "docs" / "port.md"
CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
JAX_SIDE = """
import jax
import jax.numpy as jnp


def forward(parameters, x):
    for block in parameters["blocks"]:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        h = (x - mean) / jnp.sqrt(variance + 1e-5) * block["norm"]["scale"] + block["norm"]["bias"]
        h = h @ block["up"]["kernel"] + block["up"]["bias"]
        x = x + jax.nn.gelu(h, approximate={approximate}) @ block["down"]["kernel"] + block["down"]["bias"]
    return x @ parameters["head"]["kernel"] + parameters["head"]["bias"]


def dense(key, width, out):
    return {"kernel": jax.random.normal(jax.random.key(key), (width, out)), "bias": jnp.zeros(out) + key}


def model():
    norm = {"scale": jnp.ones(16), "bias": jnp.zeros(16)}
    blocks = [{"norm": norm, "up": dense(n, 16, 64), "down": dense(n + 7, 64, 16)} for n in range(2)]
    return forward, {"blocks": blocks, "head": dense(5, 16, 5)}
"""


def decided() -> Sources:
    return Sources(
        "ports",
        frameworks=("pytorch", "tensorflow", "jax", "mindspore", "mxnet", "onnxruntime"),
        modules=("steelyard.ports.check", "steelyard.cli.commands.port"),
        files=("docs/port.md", "src/steelyard_worker/port", "tests/ports/sides"),
    )


pytestmark = [pytest.mark.conformance, pytest.mark.decided(by=decided)]


def steelyard(folder: Path, *arguments: str) -> tuple[int, str, str]:
    environ = os.environ | {"STEELYARD_RUNS": str(folder / "runs"), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "port", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=900,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The folder that the page makes in its four steps."""
    place = tmp_path_factory.mktemp("port")
    blocks = CODE.findall(PAGE.read_text(encoding="utf-8"))
    new = next(text.split()[2:] for language, text in blocks if language == "sh" and " new " in text)
    assert steelyard(place, *new)[0] == 0
    python = [text for language, text in blocks if language == "python"]
    settings = next(text for language, text in blocks if language == "toml")
    folder = place / "shop"
    written = {path.name for path in folder.iterdir()}
    assert written == {"port.toml", "pytorch_side.py", "tensorflow_side.py"}
    for name, text in zip(("pytorch_side.py", "tensorflow_side.py", "port.toml"), (*python[:2], settings), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    return place


def said(text: str) -> str:
    """Return a text as one line."""
    return " ".join(text.split())


def test_the_page_leads_to_the_cause(shop):
    shown = next(text for language, text in CODE.findall(PAGE.read_text(encoding="utf-8")) if language == "text")
    code, out, err = steelyard(shop, "check", "shop")
    assert code == 1, err
    assert said(shown) in said(out)


def test_with_the_same_epsilon_the_other_weights_remain(shop):
    side = shop / "shop" / "tensorflow_side.py"
    text = side.read_text(encoding="utf-8")
    side.write_text(text.replace("LayerNormalization(", "LayerNormalization(epsilon=1e-5, "), encoding="utf-8")
    code, out, err = steelyard(shop, "check", "shop", "--json")
    side.write_text(text, encoding="utf-8")
    assert code == 1, err
    found = json.loads(out)
    assert found["record"]["precision"] == "float64"
    assert found["findings"] == []
    assert found["sentences"][0].startswith(
        "Other weights. With the weights of pytorch_side in both, 7 pairs of modules and all"
    )


@pytest.mark.parametrize(("approximate", "findings"), [(False, 0), (True, 1)])
def test_a_function_of_jax_is_compared_by_its_tensors_and_outputs(shop, approximate, findings):
    folder = shop / f"jax-{approximate}"
    scaffold.write(folder, ["pytorch", "jax"])
    (folder / "pytorch_side.py").write_text(
        (shop / "shop" / "pytorch_side.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (folder / "jax_side.py").write_text(JAX_SIDE.replace("{approximate}", str(approximate)), encoding="utf-8")
    settings = (shop / "shop" / "port.toml").read_text(encoding="utf-8")
    settings = settings.replace("tensorflow_side", "jax_side").replace("tensorflow", "jax")
    (folder / "port.toml").write_text(settings, encoding="utf-8")
    code, out, err = steelyard(shop, "check", folder.name, "--json")
    found = json.loads(out)
    assert code == 1, err
    assert len(found["findings"]) == findings
    assert found["record"]["precision"] == "float64"
    assert {tuple(each["left"]): each["right"] for each in found["record"]["mapped"]}["1.up.weight",] == [
        "blocks/1/up/kernel"
    ]


def test_every_template_of_a_side_runs_as_it_is_written(tmp_path):
    scaffold.write(tmp_path / "all", ["tensorflow", "jax"])
    code, out, err = steelyard(tmp_path, "check", "all", "--json")
    assert code == 1, err
    assert json.loads(out)["record"]["outputs"]


KINDS = {
    "mindspore.nn.Cell": ("mindspore_side", "mindspore", "", "float32"),
    "mxnet.gluon.Block": ("mxnet_side", "mxnet", "", "float64"),
    "tf.Module": ("tf_module_side", "tensorflow", "", "float64"),
    "flax.nnx.Module": ("nnx_side", "jax", "", "float64"),
    "equinox.Module": ("equinox_side", "jax", "equinox", "float64"),
    "haiku.Transformed": ("haiku_side", "jax", "dm-haiku", "float64"),
    "onnx.ModelProto": ("onnx_side", "onnxruntime", "", "float32"),
    "keras.Model on torch": ("keras_side", "pytorch", "keras", "float64"),
    "keras.Model on jax": ("keras_side", "jax", "keras", "float64"),
}
INPUT = """
[inputs.x]
shape = [2, 3, 8, 8]
low = -2
high = 2
"""


def pair(folder: Path, side: str, framework: str, requirement: str, kind: str) -> Path:
    """Make a port of the network in tests/ports/sides from PyTorch to one other kind of object."""
    folder.mkdir()
    for name in ("weights", "pytorch_side", side):
        shutil.copyfile(SIDES / f"{name}.py", folder / f"{name}.py")
    text = (folder / f"{side}.py").read_text(encoding="utf-8").replace('"BACKEND"', f'"{kind.rpartition(" ")[2]}"')
    (folder / f"{side}.py").write_text(text, encoding="utf-8")
    requirements = f'requirements = ["{requirement}"]' if requirement else ""
    tables = f'[sides.pytorch_side]\nframework = "pytorch"\n[sides.{side}]\nframework = "{framework}"\n{requirements}\n'
    (folder / "port.toml").write_text(tables + INPUT, encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object_is_compared_with_its_twin_in_pytorch(tmp_path, kind):
    side, framework, requirement, precision = KINDS[kind]
    folder = pair(tmp_path / "port", side, framework, requirement, kind)
    code, out, err = steelyard(tmp_path, "check", "port", "--json")
    assert code == 0, (out, err)
    record = json.loads(out)["record"]
    assert (record["right"]["kind"], record["precision"]) == (kind.partition(" ")[0], precision)
    assert requirement in ("", *record["right"]["libraries"])
    assert {each["kind"] for each in record["compared"]} == {"convolution", "batch_norm", "dense", "layer_norm"}
    assert len(record["compared"]) == 5
    path = folder / f"{side}.py"
    path.write_text(path.read_text(encoding="utf-8").replace("EPS = 1e-5", "EPS = 1e-3"), encoding="utf-8")
    code, out, err = steelyard(tmp_path, "check", "port", "--json")
    assert code == 1, (out, err)
    (difference,) = json.loads(out)["record"]["differences"]
    assert (difference["where"], difference["left"]) == ("in", "norm")
    assert difference["right"].rpartition("/")[2] in ("norm", "1", "2", "layer_norm", "l")
    assert difference["cause"] == f"layer norm: pytorch_side has epsilon 1e-05, {side} has epsilon 0.001"
