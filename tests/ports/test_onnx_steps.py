"""Steps of an ONNX graph: the nodes of one layer are run together, in an order in which they can run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from steelyard_worker.port.objects import onnx_steps


def node(operation, given, made, name="", scopes=None):
    entries = [SimpleNamespace(key=onnx_steps.SCOPES, value=scopes)] if scopes is not None else []
    return SimpleNamespace(
        op_type=operation, input=given.split(), output=made.split(), name=name, metadata_props=entries, attribute=[]
    )


def steps(nodes, weights="", results="out"):
    return onnx_steps.steps(nodes, {name: name for name in weights.split()}, [], results.split())


def test_a_product_and_its_bias_are_one_step():
    found = steps([node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Relu", "c", "out")], "w b")
    assert [(step.inputs, step.outputs, step.weights, step.is_whole) for step in found] == [
        (["x"], ["c"], ["w", "b"], True),
        (["c"], ["out"], [], False),
    ]


def test_a_product_that_is_read_twice_is_a_step_by_itself():
    found = steps([node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Mul", "a c", "out")], "w b")
    assert [step.outputs for step in found] == [["a"], ["c"], ["out"]]


def test_a_scale_alone_is_no_whole_layer():
    """A layer norm in single operations receives something else at its scale than the layer does."""
    found = steps([node("Div", "x s", "a"), node("Mul", "a gamma", "out")], "gamma")
    assert [step.is_whole for step in found] == [False, False]


@pytest.mark.parametrize("scoped", [True, False])
def test_nodes_of_one_module_are_one_step_under_its_name(scoped):
    def of(operation, given, made, module):
        scopes = repr(["", module, f"{operation}_1"]) if scoped else None
        return node(operation, given, made, f"/{module.replace('.', '/')}/{operation}", scopes)

    nodes = [of("Sub", "x m", "a", "enc.norm"), of("Mul", "a g", "b", "enc.norm"), of("Relu", "b", "out", "enc")]
    found = steps(nodes, "g")
    assert [(step.name, len(step.nodes), step.is_whole) for step in found] == [
        ("enc.norm", 2, True),
        ("enc.Relu" if not scoped else found[1].name, 1, False),
    ]


def test_a_module_around_another_is_run_in_single_nodes():
    """Its second node needs what lies between, so it cannot run at once."""
    nodes = [node("Mul", "x g", "a", "/m/Mul"), node("Relu", "a", "b", "/Relu"), node("Add", "b h", "out", "/m/Add")]
    found = steps(nodes, "g h")
    assert [step.outputs for step in found] == [["a"], ["b"], ["out"]]


def test_what_nobody_reads_is_left_out():
    assert [step.outputs for step in steps([node("Relu", "x", "unused"), node("Neg", "x", "out")])] == [["out"]]
