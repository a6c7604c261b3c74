"""Two models, unmodified: equal ones are called equal, and a planted difference is named with its place and its cause."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.end_to_end


def test_equal_models_with_other_layouts_of_their_kernels_are_equal(port):
    answer = port.check()
    assert answer.code == 0, answer
    assert answer.json["verdict"] == "equal"
    mapped = {tuple(each["left"]): each for each in answer.json["record"]["mapped"]}
    assert mapped["up.weight",]["right"] == ["up.kernel"]
    assert mapped["up.weight",]["how"] == "transposed"
    assert mapped["norm.scale",]["right"] == ["norm.scale"]
    assert len(answer.json["record"]["compared"]) == 8


@pytest.mark.parametrize(
    ("changed", "place", "cause"),
    [
        ({"epsilon": 1e-6}, "norm", "layer norm: first has epsilon 1e-05, second has epsilon 1e-06"),
        (
            {"approximate": True},
            "down",
            "activation: first has GELU by the error function, second has GELU by its tanh approximation",
        ),
        (
            {"divisor": 12**0.5},
            "mixed",
            "attention: first has scores divided by the root of a head's width, second has scores divided by the root of the whole width",
        ),
        ({"causal": True}, "mixed", "attention: first has no mask, second has a causal mask"),
    ],
    ids=["epsilon", "gelu", "scale", "mask"],
)
def test_a_difference_is_named_with_its_place_and_its_cause(port, changed, place, cause):
    port.block("second", linear="dense_in_out", **changed)
    answer = port.check()
    assert answer.code == 1
    assert answer.json["verdict"] == "different"
    (finding,) = answer.json["findings"]
    assert finding == {"cause": cause, "places": 1, "first": place, "part": pytest.approx(1, abs=1e-5)}


def test_two_differences_are_both_found_in_order_with_their_parts(port):
    port.block("second", linear="dense_in_out", epsilon=1e-3, causal=True)
    answer = port.check()
    assert [each["first"] for each in answer.json["findings"]] == ["mixed", "norm"]
    assert [each.split(":")[0] for each in answer.causes] == ["attention", "layer norm"]
    assert sum(each["part"] for each in answer.json["findings"]) == pytest.approx(1, abs=1e-5)


def test_other_weights_are_said_and_the_check_goes_on_with_those_of_the_first_side(port):
    port.block("second", seed=1000)
    answer = port.check()
    assert answer.code == 1
    assert answer.json["sentences"][0].startswith(
        "Other weights. With the weights of first in both, 8 pairs of modules"
    )
    assert {each["found_by"] for each in answer.json["record"]["mapped"]} == {"name", "order"}


def test_a_record_is_shown_again_from_its_folder_alone(port, tmp_path, steelyard_port):
    port.block("second", epsilon=1e-6)
    folder = tmp_path / "record"
    first = port.check("--output", str(folder), json=False)
    assert "They part in 'norm' (first) = 'norm' (second)" in " ".join(first.out.split())
    again = steelyard_port("show", str(folder))
    assert (again.code, again.out) == (first.code, first.out)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "first has epsilon 1e-05, second has epsilon 1e-06" in page
    assert sorted(path.name for path in folder.iterdir()) == ["port.json", "report.html"]


def side(body: str, modules: str = "[dense('a', 4, 3, 0)]", extra: str = "") -> str:
    """Return the file of a side whose forward pass is one expression of `call` and `x`."""
    return (
        f"from numpy_model import *\nimport numpy as np\n{extra}\n\n"
        f"def model():\n    return NumpyModel({modules}, lambda call, x: {body})\n"
    )


NUMBERS = """
[inputs.x]
shape = [3, 4]
dtype = "float32"
low = 0
high = 20
"""


@pytest.fixture
def small(port):
    """A port whose sides are one dense layer on four numbers."""
    port.describe(NUMBERS)
    for name in ("first", "second"):
        port.write(f"{name}.py", side("call('a', x)"))
    return port


def test_two_layers_of_one_network_are_equal(small):
    assert small.check().code == 0


def test_outputs_that_only_one_model_has_are_named_and_nothing_is_called_equal(small):
    small.write("first.py", side("{'logits': call('a', x), 'hidden': x}"))
    small.write("second.py", side("{'logits': call('a', x)}"))
    answer = small.check()
    assert (answer.code, answer.json["verdict"]) == (2, "unclear")
    assert "'hidden'" in answer.json["sentences"][0]


def test_outputs_without_a_number_are_not_called_equal(small):
    for name in ("first", "second"):
        small.write(f"{name}.py", side("call('a', x) * np.nan"))
    answer = small.check()
    assert (answer.code, answer.json["verdict"]) == (2, "unclear")
    assert "no number" in answer.json["sentences"][0]


def test_an_output_that_is_transposed_is_not_equal(small):
    small.describe(NUMBERS.replace("[3, 4]", "[4, 4]"))
    modules = "[dense('a', 4, 4, 0)]"
    small.write("first.py", side("call('a', x)", modules))
    small.write("second.py", side("call('a', x).T", modules))
    answer = small.check()
    assert answer.code == 1
    assert "at the output 'output'" in answer.json["sentences"][0]


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_model_that_is_random_in_evaluation_is_named(small, name):
    small.write(f"{name}.py", side("call('a', x) * np.random.default_rng().uniform(0.5, 1, 3)"))
    answer = small.check()
    assert (answer.code, answer.out) == (2, "")
    assert f"Side '{name}' returns other values each time" in answer.err


@pytest.mark.parametrize(("epsilon", "code"), [(1e-5, 0), (1e-3, 1)])
def test_a_side_without_float64_is_compared_in_float32_against_its_own_rounding(port, epsilon, code):
    port.block("first")
    port.block("second", epsilon=epsilon)
    for name in ("first", "second"):
        text = (port.folder / f"{name}.py").read_text(encoding="utf-8")
        port.write(f"{name}.py", text.replace("NumpyModel(modules, run)", "NumpyModel(modules, run, in_float32=True)"))
    answer = port.check()
    assert answer.code == code
    record = answer.json["record"]
    assert record["precision"] == "float32"
    assert "Both sides compute in float32, because first and second cannot in float64" in answer.err
    assert 4e-6 <= record["tolerance"] < 1e-3
    assert len(answer.json["findings"]) == code


def test_a_module_that_returns_another_number_of_values_is_left_to_what_follows_it(small):
    small.write("first.py", side("call('a', x)[..., :2]"))
    extra = "def cut(t, x):\n    return (x @ t['weight'].T + t['bias'])[..., :2]"
    modules = "[Module('a', 'dense', cut, **dense('a', 4, 3, 0).tensors)]"
    small.write("second.py", side("call('a', x)", modules, extra))
    assert small.check().code == 0


def test_a_side_whose_operations_have_no_float64_is_compared_in_float32(small):
    extra = "def single(t, x):\n    if x.dtype == np.float64:\n        raise TypeError('no kernel')\n    return x @ t['weight'].T + t['bias']"
    small.write(
        "second.py", side("call('a', x)", "[Module('a', 'dense', single, **dense('a', 4, 3, 0).tensors)]", extra)
    )
    answer = small.check()
    assert (answer.code, answer.json["record"]["precision"]) == (0, "float32")


POOLS = """
def pooled(kind, over, padding):
    def run(t, x):
        around = np.pad(x, [(0, 0), (padding, padding), (0, 0)], constant_values=-np.inf if kind == "maximum" else 0)
        ones = np.pad(np.ones_like(x), [(0, 0), (padding, padding), (0, 0)])
        parts = [slice(begin, begin + 5) for begin in range(0, around.shape[1] - 4, 3)]
        if kind == "maximum":
            return np.stack([around[:, part].max(1) for part in parts], 1)
        counts = [5 if over == "the window" else ones[:, part].sum(1) for part in parts]
        return np.stack([around[:, part].sum(1) / count for part, count in zip(parts, counts)], 1)

    settings = {"kind": kind, "window": [5], "stride": [3], "padding": [padding], "mean over": over}
    return Module("pool", "pooling", run, settings)
"""


@pytest.mark.parametrize(
    ("kind", "over", "padding", "cause"),
    [
        (
            "mean",
            "the places that are there",
            2,
            "first has a mean over the window, second has a mean over the places that are there",
        ),
        ("maximum", "the window", 2, "first has mean, second has maximum"),
    ],
)
def test_pooling_modules_are_compared_and_explained_by_what_they_declare(small, kind, over, padding, cause):
    """A window of 5 and a stride of 3 are no values that are tried otherwise."""
    small.write("port.toml", (small.folder / "port.toml").read_text(encoding="utf-8").replace("[3, 4]", "[3, 15, 4]"))
    for name, pool in (("first", ("mean", "the window", 2)), ("second", (kind, over, padding))):
        modules = f"[dense('a', 4, 4, 0), pooled{pool!r}, dense('b', 4, 3, 1)]"
        small.write(f"{name}.py", side("call('b', call('pool', call('a', x)))", modules, POOLS))
    answer = small.check()
    (difference,) = answer.json["record"]["differences"]
    assert (difference["where"], difference["left"], difference["right"]) == ("in", "pool", "pool")
    assert difference["cause"] == f"pooling: {cause}"


def test_variables_that_say_where_checkpoints_lie_reach_a_side(small, monkeypatch):
    monkeypatch.setenv("HF_HOME", "/my/checkpoints")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    extra = "import os\nassert os.environ['HF_HOME'] == '/my/checkpoints'\nassert 'OMP_NUM_THREADS' not in os.environ"
    small.write("second.py", side("call('a', x)", extra=extra))
    answer = small.check()
    assert answer.code == 0, answer.err


def test_the_side_that_fails_in_float64_is_named_and_both_compute_in_float32(small):
    """An operation without a float64 kernel is no mistake of the user's."""
    refusing = "call('a', x if x.dtype == 'f4' else x[:0] / 'no kernel')"
    small.write("second.py", side(refusing))
    answer = small.check()
    assert (answer.code, answer.json["record"]["precision"]) == (0, "float32"), answer
    assert "Both sides compute in float32, because second cannot in float64" in answer.err
