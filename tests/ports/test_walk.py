"""One mistake is one finding: nothing that follows from it, and nothing that two frameworks write in different places, is another."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.end_to_end

EXTRA = """
import numpy as np

def square(path, seed, bias=True, activation=""):
    made = dense(path, 6, 6, seed)
    def run(t, x):
        found = x @ t["weight"].T + (t["bias"] if bias else 0)
        return np.maximum(found, 0) if activation else found
    return Module(path, "dense", run, {"activation": activation}, **made.tensors)

def mixing(path, seed):
    made = dense(path, 6, 6, seed)
    run = lambda t, query, key, value: (query + key * 2 + value * 3) @ t["weight"].T
    return Module(path, "", run, {}, **made.tensors)

def convolution(path, window, stride, seed):
    weight = np.random.default_rng(seed).normal(size=(3, 3, window)).astype("f4")
    def run(t, x):
        padded = np.pad(x, [(0, 0), (0, 0), (window // 2, window // 2)])
        seen = np.lib.stride_tricks.sliding_window_view(padded, window, 2)[:, :, ::stride]
        return np.einsum("bcpw,ocw->bop", seen, t["weight"])
    return Module(path, "convolution", run, {"stride": [stride], "padding": [window // 2]}, weight=weight)
"""


def side(modules: str, lines: str) -> str:
    body = "\n".join(f"        {line}" for line in lines.strip().splitlines())
    return f"from numpy_model import *\n{EXTRA}\ndef model():\n    def run(call, x):\n{body}\n    return NumpyModel({modules}, run)\n"


@pytest.fixture
def findings(port):
    def check(left, right, shape="[3, 6]"):
        port.describe(f"[inputs.x]\nshape = {shape}\nlow = -2\nhigh = 2\n")
        port.write("first.py", side(*left))
        port.write("second.py", side(*right))
        answer = port.check()
        return [(each["first"], each["cause"]) for each in answer.json["findings"]]

    return check


THREE = "[square('a', 0), square('b', 1), square('c', 2)]"


def test_what_a_connection_carries_on_is_no_second_difference(findings):
    lines = "y = call('a', x) + {} * x\nreturn call('c', y + call('b', y))"
    ((place, cause),) = findings((THREE, lines.format(1)), (THREE, lines.format(0.5)))
    assert place == "b"
    assert cause.endswith("first has the connection added, second has the connection added 0.5 times")


def test_an_activation_inside_of_a_layer_is_no_part_of_a_cause(findings):
    left = "return call('b', np.maximum(call('a', x), 0))"
    found = findings(
        ("[square('a', 0), square('b', 1)]", left),
        ("[square('a', 0, bias=False, activation='relu'), square('b', 1)]", "return call('b', call('a', x))"),
    )
    assert found == [("a", "dense layer: first has its bias, second has no bias")]


def test_all_inputs_of_a_module_that_are_one_value_are_replaced(findings):
    modules = "[square('a', 0), mixing('b', 1)]"
    lines = "y = {}(call('a', x))\nreturn call('b', y, y, y)"
    found = findings((modules, lines.format("np.tanh")), (modules, lines.format("")))
    assert found == [("b", "activation: first has tanh, second has no activation")]


def test_modules_that_return_other_sizes_are_named_if_what_follows_differs(findings):
    lines = "return call('c', call('b', call('a', x)))"
    modules = "[convolution('a', 1, {}, 0), convolution('b', {}, {}, 1), convolution('c', 1, 1, 2)]"
    found = findings((modules.format(1, 3, 2), lines), (modules.format(2, 3, 1), lines), shape="[2, 3, 8]")
    assert found == [("a", "convolution: first has stride (1,), second has stride (2,)")]
    assert not findings((modules.format(1, 1, 2), lines), (modules.format(2, 1, 1), lines), shape="[2, 3, 8]")


def test_positions_may_be_the_same_for_all_samples_or_repeated_for_each(findings):
    """A model that makes its positions itself has one row of them; one that gets them has one for each sample."""
    modules = "[embedding('p', 9, 6, 0), square('a', 1)]"
    one = "return call('a', x + call('p', np.arange(5)[None]))"
    other = "return call('a', x + call('p', np.arange({0}, {0} + 5)[None].repeat(2, 0)))"
    assert findings((modules, one), (modules, other.format(0)), "[2, 5, 6]") == []
    ((place, cause),) = findings((modules, one), (modules, other.format(1)), "[2, 5, 6]")
    assert place == "p"
    assert cause == "numbers of an embedding: first has rows as given, second has rows +1"


NORMED = "[layer_norm('n', 6, 1e-5), square('a', 1), square('b', 2)]"
AFTER = "return call('b', call('n', x + call('a', x)))"


def test_a_norm_after_a_sum_in_place_of_before_its_branch_is_named(findings):
    found = findings((NORMED, "return call('b', x + call('a', call('n', x)))"), (NORMED, AFTER))
    said = "order of modules: first has 'n' before 'a', second has 'n' after 'a'"
    assert ("n", said) in found
    assert [place for place, cause in found if cause not in ("", said)] == []


def test_another_order_without_that_sum_is_no_such_cause(findings):
    found = findings(
        (NORMED, "return call('b', x + call('a', call('n', x)))"), (NORMED, AFTER.replace("x +", "2 * x +"))
    )
    assert not [cause for _, cause in found if cause.startswith("order")]
