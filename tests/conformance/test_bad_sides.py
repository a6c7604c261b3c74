"""Sides of real frameworks that cannot be compared: one sentence each, which names the side and says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from decides import Sources

from steelyard.console import Screen
from steelyard.ports import definition, interpreters
from steelyard.ports.side_process import SideError, SideProcess

SIDES = Path(__file__).parents[1] / "ports" / "sides"
NO_CALL = "The module Bag has no __call__. "
NO_VALUES = "'conv/weight' of the model has a shape, but no values. Let model() load a checkpoint into it."
WITH_STATE = "A function of hk.transform_with_state is returned as (transformed, params, state), and model() returned "
LATE = "at its first call, when it was too late to load anything into it. Let model() call it once, and load the checkpoint then."

# Side -> its framework, what it requires, bodies of model() with what is said of each, and what is said of a kernel of another shape.
KINDS = {
    "mindspore": (
        "mindspore",
        "",
        {
            "return Net": "model() returned the class Net itself",
            "return good(), {}": "model() returned (Net, dict), which is not",
        },
        "The forward pass failed in line 25: ValueError: For 'MatMul' the input dimensions must be equal",
    ),
    "mxnet": (
        "mxnet",
        "",
        {
            "return Net()": "The parameter 'conv.weight' has no values yet. Let model() initialise the block",
            "return mx.sym.Variable('x')": "model() returned a Symbol, which is not",
        },
        "model() of side.py failed in line 41: AssertionError: Expected shape",
    ),
    "tf_module": (
        "tensorflow",
        "",
        {
            "return type('Bag', (tf.Module,), {})()": f"{NO_CALL}Give it one, which computes the outputs.",
            "return tf.function(lambda x: x)": "model() returned a Function, which is not",
        },
        "The forward pass failed in line 19: InvalidArgumentError: Matrix size-incompatible: In[0]: [2,6], In[1]: [7,16].",
    ),
    "keras": (
        "tensorflow",
        "",
        {"return layers.Dense(3)": "model() returned a Dense, which is not"},
        "model() of side.py failed in line 30: ValueError: Layer up weight shape (6, 16) is not compatible",
    ),
    "nnx": (
        "jax",
        "",
        {
            "return type('Bag', (nnx.Module,), {})()": f"{NO_CALL}Return (function, module): the function gets",
            "return nnx.split(good())": "model() returned (GraphDef, State), which is not",
            "return nnx.eval_shape(lambda: Net(nnx.Rngs(0)))": NO_VALUES.replace("conv/weight", "bn/bias"),
            "return jnp.dot, {'w': 1.0}": "'w' among the parameters is a float. The parameters of a function are a tree of arrays",
        },
        "The forward pass failed in line 28: TypeError: dot_general requires contracting dimensions to have the same shape",
    ),
    "equinox": (
        "jax",
        "equinox",
        {
            "return type('Bag', (eqx.Module,), {})()": f"{NO_CALL}Return (function, module): the function gets",
            "return eqx.nn.make_with_state(eqx.nn.BatchNorm)(6, 'b', mode='batch')": "a module of Equinox with its state",
            "return jax.vmap, eqx.filter_eval_shape(Net)": NO_VALUES,
        },
        "model() of side.py failed in line 58: TypeError: cannot reshape array of shape (16, 7) (size 112) into shape (16, 6)",
    ),
    "haiku": (
        "jax",
        "dm-haiku",
        {
            "return good()[0]": f"{WITH_STATE}it alone.",
            "return good()[:2]": f"{WITH_STATE}2 objects.",
            "return hk.transform(net), {}, {}": "A function of hk.transform is returned as (transformed, params)",
        },
        "The forward pass failed in line 19: ValueError: 'up/w' with retrieved shape (7, 16) does not match shape=[6, 16]",
    ),
    "onnx": (
        "onnxruntime",
        "",
        {
            "return 'nothing.onnx'": "There is no file 'nothing.onnx', which model() returned.",
            "open('a.onnx', 'w').write('version 1 of a pointer')\n    return 'a.onnx'": "The file 'a.onnx' has no ONNX model: ",
            "open('b.onnx', 'w').close()\n    return 'b.onnx'": "The ONNX model in 'b.onnx' is empty: it has no nodes.",
        },
        "The node 'u' of the ONNX model failed: ",
    ),
}
LATER = {
    "keras": (
        "return keras.Sequential([layers.Flatten(), layers.Dense(3)])",
        "The model made 'sequential/dense/bias' " + LATE,
    ),
    "tf_module": (
        """
    class Lazy(tf.Module):
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.ones(8))
            return x * self.w

    return Lazy()""",
        "The model made 'w' " + LATE,
    ),
}
OTHER_SHAPE = 'from weights import W\nimport numpy as np\nW["up.weight"] = np.ones((16, 7), "float32")\n'


def decided() -> Sources:
    return Sources(
        "ports",
        frameworks=("tensorflow", "jax", "mindspore", "mxnet", "onnxruntime"),
        files=("src/steelyard_worker/port", "tests/ports/sides"),
    )


pytestmark = [pytest.mark.conformance, pytest.mark.decided(by=decided)]


class Asked:
    """One side of a port, whose file is written again for every model that it is asked about."""

    def __init__(self, folder: Path, kind: str) -> None:
        framework, requirement = KINDS[kind][:2]
        self._folder = folder
        self.text = (SIDES / f"{kind}_side.py").read_text(encoding="utf-8").replace('"BACKEND"', '"tensorflow"')
        shutil.copyfile(SIDES / "weights.py", folder / "weights.py")
        np.save(folder / "x.npy", np.random.default_rng(0).uniform(-2, 2, (2, 3, 8, 8)).astype("float32"))
        self._write(self.text)
        needs = f'requirements = ["{requirement}"]\n' if requirement else ""
        tables = "".join(
            f'[sides.{name}]\nframework = "{framework}"\nfile = "side.py"\n{needs}' for name in ("side", "other")
        )
        (folder / definition.FILE).write_text(f'{tables}[inputs.x]\nfile = "x.npy"\n', encoding="utf-8")
        port = definition.read(folder)
        self._process = SideProcess(
            "side", interpreters.of(port, Screen())["side"], folder / "side.py", folder / "arrays", 300
        )

    def answer(self, text: str) -> str:
        """Return what the side says that it cannot do."""
        self._write(text)
        with pytest.raises(SideError) as caught:
            self._process.ask("describe", folder=str(self._process.new_folder()))
            arrays = {"x": str(self._folder / "x.npy")}
            self._process.ask("forward", folder=str(self._process.new_folder()), arrays=arrays, inputs={}, outputs={})
        return str(caught.value)

    def close(self) -> None:
        self._process.close()

    def _write(self, text: str) -> None:
        (self._folder / "side.py").write_text(text, encoding="utf-8")


@pytest.fixture
def asked(tmp_path, request):
    side = Asked(tmp_path, request.param)
    yield side
    side.close()


def redefined(text: str, body: str) -> str:
    return f"{text}\n\ngood = model\n\n\ndef model():\n    {body}\n"


def check_sentence(said: str, expected: str) -> None:
    assert said.startswith("Side 'side': ")
    assert expected in said
    assert "\n" not in said
    assert said.endswith(".")


@pytest.mark.parametrize(("asked", "kind"), [(kind, kind) for kind in KINDS], indirect=["asked"])
def test_another_object_and_a_checkpoint_of_another_shape_are_one_sentence_each(asked, kind):
    _, _, bodies, of_shape = KINDS[kind]
    for body, expected in bodies.items():
        check_sentence(asked.answer(redefined(asked.text, body)), expected)
    check_sentence(asked.answer(asked.text.replace("from weights import W\n", OTHER_SHAPE)), of_shape)


@pytest.mark.parametrize(("asked", "kind"), [(kind, kind) for kind in LATER], indirect=["asked"])
def test_tensors_that_a_model_makes_at_its_first_call_are_refused(asked, kind):
    body, expected = LATER[kind]
    check_sentence(asked.answer(redefined(asked.text, body)), expected)
