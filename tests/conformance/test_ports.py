"""The page docs/port.md, followed with real frameworks: a PyTorch network and its port to Keras, and one to plain JAX."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from decides import Sources

from steelyard.catalog.frameworks import WORKER
from steelyard.console import Screen
from steelyard.ports import definition, interpreters, scaffold

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
[targets.y]
shape = [2]
dtype = "int64"
low = 0
high = 5
"""
# Stages of training that are compared with PyTorch, where a side's kind is followed in training and its file has the functions.
TRAINED = {
    "equinox_side": {"loss", "gradients", "first update of the weights", "five updates of the weights"},
    "haiku_side": {"loss", "gradients", "first update of the weights", "five updates of the weights"},
    "keras_side": {"running statistics", "training mode"},
    "nnx_side": {"loss"},
    "onnx_side": {"loss"},
}


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
    # In training mode Keras' batch norm really differs from PyTorch's.
    known = [VARIANCE.replace("first", "pytorch_side").replace("second", side)] if side == "keras_side" else []
    assert code == len(known), (out, err)
    record = json.loads(out)["record"]
    assert (record["right"]["kind"], record["precision"]) == (kind.partition(" ")[0], precision)
    assert requirement in ("", *record["right"]["libraries"])
    assert {each["kind"] for each in record["compared"]} == {"convolution", "batch_norm", "dense", "layer_norm"}
    assert (len(record["compared"]), record["differences"]) == (5, [])
    assert sorted({one["cause"] for stage in record["training"] for one in stage["differences"]}) == known
    assert {stage["name"] for stage in record["training"] if not stage["unseen"]} == TRAINED.get(side, set())
    path = folder / f"{side}.py"
    path.write_text(path.read_text(encoding="utf-8").replace("EPS = 1e-5", "EPS = 1e-3"), encoding="utf-8")
    code, out, err = steelyard(tmp_path, "check", "port", "--json")
    assert code == 1, (out, err)
    (difference,) = json.loads(out)["record"]["differences"]
    assert (difference["where"], difference["left"]) == ("in", "norm")
    assert difference["right"].rpartition("/")[2] in ("norm", "1", "2", "layer_norm", "l")
    assert difference["cause"] == f"layer norm: pytorch_side has epsilon 1e-05, {side} has epsilon 0.001"


VARIANCE = "running statistics: first has the variance over n - 1, second has the variance over n"
TRAINING_TOML = """
contract = 1
[sides.first]
framework = "pytorch"
[sides.second]
framework = "{framework}"
[inputs.x]
shape = [8, 6, 6, 3]
low = -2
high = 2
[targets.y]
shape = [8]
dtype = "int64"
low = 0
high = 5
"""
TORCH_TRAINING = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x.permute(0, 3, 1, 2))))
        return self.head(self.drop(x).mean((2, 3)))


def model():
    torch.manual_seed(0)
    net = Net()
    net.norm.running_mean += 0.1
    return net


def loss(outputs, batch):
    return nn.functional.cross_entropy(outputs, batch["y"])


def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
"""
KERAS_TRAINING = """
import keras
from keras import layers


def model():
    x = keras.Input((6, 6, 3))
    h = layers.BatchNormalization(epsilon=1e-5, momentum={momentum}, name="norm")(
        layers.Conv2D(4, 3, padding="same", name="conv")(x)
    )
    h = layers.GlobalAveragePooling2D()(layers.Dropout(0.5)(layers.ReLU()(h)))
    return keras.Model(x, layers.Dense(5, name="head")(h))


def loss(outputs, batch):
    losses = keras.losses.sparse_categorical_crossentropy(batch["y"], outputs, from_logits=True)
    return keras.ops.{over}(losses)


def optimizer(model):
    return keras.optimizers.{optimizer}
"""
JAX_TRAINING = """
import jax
import jax.numpy as jnp
import optax


def forward(p, x):
    h = jax.lax.conv_general_dilated(x, p["conv"]["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    norm = p["norm"]
    scale = norm["scale"] / jnp.sqrt(p["batch_stats"]["var"] + 1e-5)
    h = (h + p["conv"]["bias"] - p["batch_stats"]["mean"]) * scale + norm["bias"]
    return jnp.maximum(h, 0).mean((1, 2)) @ p["head"]["kernel"] + p["head"]["bias"]


def model():
    keys = jax.random.split(jax.random.key(0), 2)
    return forward, {{
        "conv": {{"kernel": jax.random.normal(keys[0], (3, 3, 3, 4)), "bias": jnp.arange(4.0)}},
        "norm": {{"scale": jnp.ones(4), "bias": jnp.zeros(4)}},
        "head": {{"kernel": jax.random.normal(keys[1], (4, 5)), "bias": jnp.arange(5.0)}},
        "batch_stats": {{"mean": jnp.full(4, 0.3), "var": jnp.full(4, 1.3)}},
    }}


def loss(outputs, batch):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, batch["y"]).mean()


def optimizer(parameters):
    return {optimizer}
"""


NO_LOADERS = {"batches of the loaders": "first and second have no batches()"}


def trained(place: Path, framework: str, side: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Check a PyTorch network and its port; returns the causes of every stage of training, and why others were not compared."""
    folder = place / "trained"
    folder.mkdir()
    (folder / "port.toml").write_text(TRAINING_TOML.format(framework=framework), encoding="utf-8")
    (folder / "first.py").write_text(TORCH_TRAINING, encoding="utf-8")
    (folder / "second.py").write_text(side, encoding="utf-8")
    code, out, err = steelyard(place, "check", "trained", "--json")
    assert code == 1, err
    found = json.loads(out)["record"]
    assert (found["precision"], found["differences"]) == ("float64", [])
    stages = found["training"]
    causes = {
        each["name"]: sorted({one["cause"] for one in each["differences"]}) for each in stages if not each["unseen"]
    }
    return causes, {each["name"]: each["unseen"] for each in stages if each["unseen"]}


def test_training_of_a_port_to_keras_agrees_but_for_the_variance(tmp_path):
    side = KERAS_TRAINING.format(momentum=0.9, over="mean", optimizer="SGD(0.1, momentum=0.9)")
    causes, unseen = trained(tmp_path, "tensorflow", side)
    assert unseen == NO_LOADERS
    assert causes.pop("running statistics") == [VARIANCE]
    stages = ("loss", "gradients", "training mode", "first update of the weights", "five updates of the weights")
    assert causes == {name: [] for name in stages}


def test_mistakes_in_the_training_of_a_port_to_keras_are_named(tmp_path):
    side = KERAS_TRAINING.format(momentum=0.99, over="sum", optimizer="AdamW(0.1)")
    causes, unseen = trained(tmp_path, "tensorflow", side)
    assert unseen == {"gradients": "the losses differ already"} | NO_LOADERS
    share = "first has 0.1 of the batch's value taken{}, second has 0.01 of the batch's value taken{}"
    assert causes["running statistics"] == sorted(
        f"running statistics: {share.format(*more)}"
        for more in (("", ""), (", the variance over n - 1", ", the variance over n"))
    )
    assert causes["loss"] == ["cross-entropy: first has the mean over all that counts, second has the sum"]
    assert causes["first update of the weights"] == [
        "optimizer: first has SGD, no weight decay, second has Adam, a weight decay of 0.004 apart from the gradient"
    ]


@pytest.mark.parametrize(
    ("optimizer", "cause"),
    [
        ("optax.sgd(0.1, 0.9)", []),
        (
            "optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.1, 0.9))",
            ["optimizer: first has no weight decay, second has a weight decay of 0.01 added to the gradient"],
        ),
        ("optax.sgd(0.1, 0.9, nesterov=True)", ["optimizer: first has plain momentum, second has Nesterov's momentum"]),
    ],
)
def test_gradients_and_updates_of_plain_jax_are_compared(tmp_path, optimizer, cause):
    causes, unseen = trained(tmp_path, "jax", JAX_TRAINING.format(optimizer=optimizer))
    assert {*unseen} == {"running statistics", "training mode", *NO_LOADERS}
    assert causes["five updates of the weights"] == cause
    assert (causes["loss"], causes["gradients"]) == ([], [])


PASSES = """
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from steelyard_worker.port.contender import SidePredictor
from steelyard_worker.port.observed import Observer

file, array = sys.argv[1:]
timed = SidePredictor(SimpleNamespace(FILE=file, INPUTS={"x": array}, TARGETS={}))
batch = timed.put({})
for _ in range(2):
    timed.infer(batch)
timed.synchronise()
made = timed.outputs(batch)
model = timed._model
checked = model.forward(batch, Observer(None, model.bridge, {}, {}), False)
(name,) = made
apart = np.abs(made[name] - model.bridge.to_array(checked)).max() / np.abs(made[name]).max()
print(f"apart {apart:.1e}")
assert apart < 1e-5
"""
UNTIMED = "onnx_side"
"""Its threads are those of the session that its user makes, so it has to define predict()."""


@pytest.mark.parametrize("kind", [each for each in KINDS if KINDS[each][0] != UNTIMED])
def test_the_forward_pass_that_is_timed_is_the_one_that_was_checked(tmp_path, kind):
    side, framework, requirement, _ = KINDS[kind]
    folder = pair(tmp_path / "port", side, framework, requirement, kind)
    python = interpreters.of(definition.read(folder), Screen())[side]
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(-2, 2, (2, 3, 8, 8)).astype(np.float32))
    given = [str(python), "-c", PASSES, str(folder / f"{side}.py"), str(tmp_path / "x.npy")]
    done = subprocess.run(given, env=os.environ | {"PYTHONPATH": str(WORKER.parent)}, capture_output=True, text=True)
    assert "apart" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


ATTENTION_TOML = """
contract = 1
[sides.first]
framework = "jax"
[sides.second]
framework = "jax"
[inputs.x]
shape = [2, 4, 6]
"""
ATTENTION_SIDE = """
import jax
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        x = x + nn.MultiHeadDotProductAttention(2, dropout_rate=0.5)(x, deterministic=not train)
        return nn.Dense(3)(x)


def model():
    net = Net()
    return net, net.init(jax.random.key(0), jax.numpy.zeros((2, 4, 6)))
"""


def test_dropout_inside_of_attention_is_switched_off_in_training(tmp_path):
    """Attention of Flax draws what to drop by itself: no module shows it."""
    (tmp_path / "port").mkdir()
    (tmp_path / "port" / "port.toml").write_text(ATTENTION_TOML, encoding="utf-8")
    for name in ("first", "second"):
        (tmp_path / "port" / f"{name}.py").write_text(ATTENTION_SIDE, encoding="utf-8")
    _, out, _ = steelyard(tmp_path, "check", "port", "--json")
    found = json.loads(out)
    stage = next(each for each in found["record"]["training"] if each["name"] == "training mode")
    assert (found["verdict"], stage["unseen"], stage["differences"]) == ("equal", "", [])
    assert stage["compared"] > 1
