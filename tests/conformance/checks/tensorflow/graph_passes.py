"""What the TensorFlow adapter relies on: passes that rewrite a graph."""

import contextlib

import tensorflow as tf

from checks.tensorflow.shared import FRAMEWORK, adapter_of
from steelyard_worker.frameworks.tensorflow import graphs, passes


def check_every_choice_of_passes_is_reported():
    with every_pass_afterwards():
        for value in FRAMEWORK["knobs"]["passes"]["values"]:
            passes.choose(value)
            assert passes.observed() == value
        tf.config.optimizer.set_experimental_options({"remapping": False})
        assert passes.observed() == "unknown"
        assert adapter_of("graph", passes="pruning").applied()["passes"] == "pruning"


def check_each_pass_removes_its_own_nodes():
    """A product that nothing uses, an expression that is there twice, and a sum of constants."""

    def step(batch):
        _ = batch["x"] * 7.0
        return tf.exp(batch["x"]) + tf.exp(batch["x"]) + (tf.constant(1.0) + tf.constant(2.0))

    with every_pass_afterwards():
        found = list(graphs.stages(step, graph_of, {"x": tf.ones(3)}, "all"))
    traced, run = (stage.kinds for stage in found[:2])
    by_passes = {stage.passes: stage.kinds for stage in found[2:]}
    assert traced["Mul"] == 1
    assert traced["Exp"] == 2
    assert by_passes["none"] == traced
    assert "Mul" not in by_passes["pruning"]
    assert by_passes["pruning"]["Exp"] == 2
    assert by_passes["arithmetic"]["Exp"] == 1
    assert by_passes["folding"]["AddV2"] < traced["AddV2"]
    assert run["Exp"] == 1


def check_a_process_with_its_own_choice_counts_that_alone():
    with every_pass_afterwards():
        passes.choose("none")
        found = list(graphs.stages(lambda batch: batch["x"] * 2.0, graph_of, {"x": tf.ones(3)}, "none"))
    assert [stage.passes for stage in found] == ["", ""]


def graph_of(function):
    """Return the function as a graph."""
    return tf.function(function, autograph=False)


@contextlib.contextmanager
def every_pass_afterwards():
    """All checks share one process."""
    try:
        yield
    finally:
        passes.choose("all")
