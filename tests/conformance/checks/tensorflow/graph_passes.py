"""What the TensorFlow adapter relies on: passes that rewrite a graph."""

import contextlib
import os
import re
import subprocess
import sys

import tensorflow as tf

from checks.tensorflow.shared import FRAMEWORK, WORKER, adapter_of
from steelyard_worker.frameworks.tensorflow import graphs, passes

# The names that passes have in TensorFlow's own log; those of shapes and of functions are counted there, and not named.
LOGGED = {
    "pruning": "model_pruner",
    "folding": "constant_folding",
    "arithmetic": "arithmetic_optimizer",
    "dependency": "dependency_optimizer",
    "layout": "layout",
    "remapping": "remapper",
    "loops": "loop_optimizer",
    "implementations": "implementation_selector",
    "subgraphs": "common_subgraph_elimination",
    "memory": "memory_optimizer",
    "debug-stripper": "debug_stripper",
    "pin-to-host": "pin_to_host_optimizer",
    "scoped-allocator": "scoped_allocator_optimizer",
}
COUNTED = {"shapes", "functions"}
# Shows each choice of passes in a process whose log has every pass.
EVERY_CHOICE = """
import sys
sys.path.insert(0, sys.argv[1])
from steelyard_worker.frameworks.tensorflow import passes
for value in passes.values():
    passes.choose(value)
    print(f"choice {value}", file=sys.stderr, flush=True)
    passes.seen()
"""


def check_every_choice_of_passes_is_reported():
    with every_pass_afterwards():
        for value in FRAMEWORK["knobs"]["passes"]["values"]:
            passes.choose(value)
            assert passes.observed() == value
        assert sorted(passes.values()) == sorted(FRAMEWORK["knobs"]["passes"]["values"])
        for option in ({"remapping": False, "layout_optimizer": False}, {"auto_mixed_precision": True}):
            passes.choose("all")
            tf.config.optimizer.set_experimental_options(option)
            assert passes.observed() == "unknown"
        passes.choose("all")
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision": False})
        assert adapter_of("graph", passes="pruning").applied()["passes"] == "pruning"


def check_a_choice_that_the_graph_does_not_show_is_not_reported():
    """Options that say one thing, and a runtime that does another."""
    with every_pass_afterwards():
        passes.choose("without-folding")
        told, passes._options = passes._options, lambda: passes.on_with("without-remapping")
        try:
            assert passes.observed() == "unknown"
        finally:
            passes._options = told
        assert passes.observed() == "without-folding"


def check_the_log_of_the_runtime_has_the_passes_of_every_choice():
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "meta_optimizer=2"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", EVERY_CHOICE, str(WORKER.parent)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    logs = {text.partition("\n")[0]: text for text in done.stderr.split("choice ")[1:]}
    assert [*logs] == passes.values()
    for value, log in logs.items():
        on = passes._effective(passes.on_with(value))
        named = {found[1] for found in re.finditer(r"meta_optimizer\.cc:\d+\] (\w+)(?:\{.*\})?: Graph size after", log)}
        assert named - {"tfg_optimizer"} == {LOGGED[name] for name in on if name in LOGGED}, value
        numbers = [int(found) for found in re.findall(r"num_optimizers=(\d+)", log)]
        # One more without an option prepares the graph for all others, and one moves code of conditionals after them.
        assert numbers == ([len(on) + 1, 1] if on else []), value
    assert passes.USUAL - LOGGED.keys() == COUNTED


def check_one_pass_more_or_less_is_seen_in_the_graph():
    def step(batch):
        return tf.exp(batch["x"]) + tf.exp(batch["x"]) + tf.pow(batch["x"], 2.0)

    with every_pass_afterwards():
        found = list(graphs.stages(step, graph_of, {"x": tf.ones(3)}, "all"))
    by_passes = {stage.passes: stage.kinds for stage in found[2:]}
    assert {value for value, kinds in by_passes.items() if kinds["Exp"] == 2} >= {
        "without-subgraphs",
        "without-arithmetic",
    }
    assert by_passes["without-layout"]["Exp"] == 1
    assert by_passes["without-arithmetic"]["Pow"] == 1
    assert by_passes["with-debug-stripper"] == by_passes["without-memory"]


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
