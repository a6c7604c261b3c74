"""Modules are followed by replacing their method on objects or classes, and are afterwards as they were."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard_worker.port import attributes, kinds
from steelyard_worker.port.calling import check_callable, in_order, mode_of
from steelyard_worker.port.errors import SideError, message
from steelyard_worker.port.following import classes_followed, objects_followed
from steelyard_worker.port.observed import Bridge, Call, Observer

BRIDGE = Bridge(
    lambda value: isinstance(value, np.ndarray), lambda array: array, lambda array, like: array.astype(like.dtype)
)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def run(self, x):
        return x * self.factor

    def __call__(self, x):
        return self.run(x)


class Shifted(Scaled):
    def __call__(self, x):
        return super().__call__(x) + 1


class Failing(Scaled):
    def __call__(self, x):
        raise ValueError("no")


@pytest.fixture
def observer(tmp_path):
    return Observer(tmp_path, BRIDGE, {}, {})


def call_of(path, module):
    return Call("", path, type(module).__name__)


def test_a_method_of_objects_is_followed_and_put_back(observer):
    modules = {"a": Scaled(2), "b": Scaled(3)}
    modules["b"].__dict__["run"] = lambda x: x * 5
    with objects_followed(observer, modules, "run", call_of):
        assert modules["a"].run(np.ones(1)) == 2
        assert modules["b"].run(np.ones(1)) == 5
    assert [call.name for call in observer.calls] == ["a", "b"]
    assert "run" not in vars(modules["a"])
    assert modules["b"].run(1) == 5


def test_a_call_of_a_parent_class_is_part_of_the_same_call(observer):
    modules = {"a": Scaled(2), "b": Shifted(3)}
    paths = {id(module): path for path, module in modules.items()}
    before = Scaled.__call__, Shifted.__call__
    with classes_followed(observer, map(type, modules.values()), lambda module: paths.get(id(module), ""), call_of):
        assert modules["b"](modules["a"](np.ones(1))) == 7
        assert Shifted(1)(np.ones(1)) == 2  # one that is not followed
    assert [call.name for call in observer.calls] == ["a", "b"]
    assert (Scaled.__call__, Shifted.__call__) == before


def test_an_error_in_a_module_leaves_classes_as_they_were(observer):
    module, before = Failing(1), Failing.__call__
    with pytest.raises(ValueError, match="no"), classes_followed(observer, [Failing], lambda _: "a", call_of):
        module(np.ones(1))
    assert Failing.__call__ is before
    observer.entered(Call("", "b", "Scaled"), ())
    assert observer.calls[-1].depth == 0


def test_attributes_lead_to_modules_in_containers_each_once():
    root, shared = Scaled(0), Scaled(1)
    root.rows = [shared, {"x": (Shifted(2), shared)}]
    root.again = shared
    shared.inner = Scaled(3)
    found = attributes.modules(root, lambda value: isinstance(value, Scaled), attributes.members)
    assert list(found) == ["rows/0", "rows/0/inner", "rows/1/x/0"]


def test_containers_keep_their_types_when_their_parts_are_replaced():
    value = [1, (2, {"a": 3})]
    assert attributes.replaced(value, lambda each: each * 10) is value
    assert value == [10, (20, {"a": 30})]


@pytest.mark.parametrize(("training", "expected"), [(True, {"is_training": True}), (False, {"is_training": False})])
def test_a_mode_is_given_under_the_name_that_a_function_has(training, expected):
    assert mode_of(lambda x, is_training: x, training) == expected
    assert mode_of(lambda x, deterministic: x, training) == {"deterministic": not training}
    assert mode_of(lambda x: x, training) == {}


@pytest.mark.parametrize(
    ("arguments", "expected"), [({"a": 1, "b": 2}, (1, 2)), ((1, 2), (1, 2)), ([1, 2], ([1, 2],)), (1, (1,))]
)
def test_inputs_are_arguments_in_their_order(arguments, expected):
    assert in_order(arguments) == expected


def test_a_module_that_cannot_be_called_is_refused_with_what_to_do():
    check_callable(Scaled(1), "")
    with pytest.raises(SideError, match=r"^The module object has no __call__\. Give it one\.$"):
        check_callable(object(), "Give it one.")


def test_the_first_class_of_a_table_says_what_a_module_computes():
    known = [(Shifted, "sum", lambda m: {"factor": m.factor}), ((Scaled, int), "product", lambda _: {})]
    assert kinds.described(Shifted(3), known) == ("sum", {"factor": 3})
    assert kinds.described(Scaled(3), known) == ("product", {})
    assert kinds.described("x", known) == ("", {})


@pytest.mark.parametrize(
    "text",
    [
        "sizes differ.",
        "sizes\n  differ",
        "sizes differ ---------- C++ at core.cc:7",
        "sizes differ Stack trace: a.so",
        "{{function_node __wrapped__MatMul_device_/job:localhost}} sizes differ [Op:MatMul] name: x",
    ],
)
def test_what_a_framework_in_cpp_adds_to_an_error_is_left_out(text):
    assert message(ValueError(text)) == "sizes differ"
