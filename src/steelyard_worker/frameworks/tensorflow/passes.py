"""The knob `passes`: which of Grappler's passes rewrite a graph before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf
from tensorflow.core.protobuf.config_pb2 import ConfigProto
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.eager import context

from steelyard_worker.graphs import cumulative, leave_one_out

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

# The default. The adapter then sets no option.
ALL = "all"
NONE = "none"
OTHERS = "others"
# The passes that Dai et al. 2022 study, in their order, and TensorFlow's options for them.
STUDIED = {
    "pruning": "disable_model_pruning",
    "folding": "constant_folding",
    "arithmetic": "arithmetic_optimization",
    "dependency": "dependency_optimization",
}
# Two that the document counts as one.
SHOWN_TOGETHER = "arithmetic+dependency"
# Those of the others that have an option and are on unless it is set.
REST = {
    "layout": "layout_optimizer",
    "shapes": "shape_optimization",
    "remapping": "remapping",
    "loops": "loop_optimization",
    "functions": "function_optimization",
    "implementations": "implementation_selector",
}
# TensorFlow does not start its passes for this one alone.
NOT_ALONE = "implementations"
# On, and without an option of `tf.config.optimizer`: the field of RewriterConfig, and its values for off and for TensorFlow's own
# choice. Code motion of conditionals has a field, too, but runs whatever it says.
WITHOUT_OPTION = {
    "subgraphs": ("common_subgraph_elimination", RewriterConfig.OFF, RewriterConfig.DEFAULT),
    "memory": ("memory_optimization", RewriterConfig.NO_MEM_OPT, RewriterConfig.DEFAULT_MEM_OPT),
}
# Off unless their option is set.
USUALLY_OFF = {
    "debug-stripper": "debug_stripper",
    "pin-to-host": "pin_to_host_optimization",
    "scoped-allocator": "scoped_allocator_optimization",
}
# Strategies over several processes switch it on by themselves, so that gradients are exchanged together.
OF_STRATEGIES = "scoped-allocator"
# They compute in another precision, so they stay off.
OTHER_PRECISION = ("auto_mixed_precision", "auto_mixed_precision_onednn_bfloat16", "auto_mixed_precision_mkl")

USUAL = frozenset((*STUDIED, *REST, *WITHOUT_OPTION))
WITHOUT, WITH = "without-", "with-"


def alone() -> list[str]:
    """Return the values that leave one pass on of those with an option."""
    return [*STUDIED, *(name for name in REST if name != NOT_ALONE)]


def switched() -> list[str]:
    """Return the values that differ from TensorFlow's own choice in one pass."""
    return [f"{WITHOUT}{name}" for name in (*STUDIED, *REST, *WITHOUT_OPTION)] + [
        f"{WITH}{name}" for name in USUALLY_OFF
    ]


def values() -> list[str]:
    """Return every value of the knob."""
    studied = tuple(STUDIED)
    sets = [*alone(), *cumulative(studied), *leave_one_out(studied), SHOWN_TOGETHER]
    return [*dict.fromkeys([ALL, NONE, *sets, OTHERS, *switched()])]


def on_with(value: str) -> frozenset[str]:
    """Return the passes that run with a value of the knob."""
    if value == ALL:
        return USUAL
    if value == NONE:
        return frozenset()
    if value == OTHERS:
        return USUAL - STUDIED.keys()
    if value.startswith(WITHOUT):
        return USUAL - {value.removeprefix(WITHOUT)}
    if value.startswith(WITH):
        return USUAL | {value.removeprefix(WITH)}
    return frozenset((*value.split("+"), *WITHOUT_OPTION))


def choose(value: str) -> None:
    """Set every option as a value of the knob says; it holds for calls of functions from now on."""
    on = on_with(value)
    options = {option: (name in on) != option.startswith("disable") for name, option in (STUDIED | REST).items()}
    options |= {option: name in on for name, option in USUALLY_OFF.items()}
    config = ConfigProto()
    for name, (field, off, usual) in WITHOUT_OPTION.items():
        setattr(config.graph_options.rewrite_options, field, usual if name in on or value == NONE else off)
    # TensorFlow has no function for these fields once it has started.
    context.context()._config = config if config.ByteSize() else None  # noqa: SLF001
    tf.config.optimizer.set_experimental_options(options | {"disable_meta_optimizer": value == NONE})


def observed(is_spread: bool = False) -> str:
    """Return the value of the knob that TensorFlow's options amount to, if a small graph shows the same passes.

    Nothing is traced where TensorFlow's own choice runs, or where a function would be `is_spread` over devices or processes.
    There, strategies switch one pass on by themselves, so that it tells nothing.
    """
    on = _options() - ({OF_STRATEGIES} if is_spread else set())
    found = next((value for value in values() if on_with(value) == on), "unknown")
    if found in (ALL, "unknown") or is_spread:
        return found
    looked_for = VISIBLE.keys() - ({"remapping"} if tf.config.get_visible_devices("GPU") else set())
    return found if seen() & looked_for == _effective(on_with(found)) & looked_for else "unknown"


def _options() -> frozenset[str]:
    """Return the passes that are on by TensorFlow's options; one that was never set is as usual."""
    options = context.context().config.graph_options.rewrite_options
    others = [getattr(options, name) == RewriterConfig.ON for name in OTHER_PRECISION]
    if any(others) or options.auto_parallel.enable:
        return frozenset({"another computation"})
    if options.disable_meta_optimizer:
        return frozenset()
    toggles = {name: option for name, option in (STUDIED | REST).items() if not option.startswith("disable")}
    off = {name for name, option in toggles.items() if getattr(options, option) == RewriterConfig.OFF}
    off |= {name for name, (field, value, _) in WITHOUT_OPTION.items() if getattr(options, field) == value}
    off |= {"pruning"} if options.disable_model_pruning else set()
    on = {name for name, option in USUALLY_OFF.items() if getattr(options, option) == RewriterConfig.ON}
    return (USUAL - off) | on


def _effective(on: frozenset[str]) -> frozenset[str]:
    """Return the passes of a choice that run: TensorFlow joins equal expressions only where it does arithmetic, too."""
    return on if "arithmetic" in on else on - {"subgraphs"}


# Passes whose work shows in the graph of `_probe` whichever others run, on a CPU, by the kinds of nodes that are left.
VISIBLE: dict[str, Callable[[Counter[str]], bool]] = {
    "folding": lambda run: run["Cos"] == 0,
    "arithmetic": lambda run: run["Pow"] == 0,
    "dependency": lambda run: run["NoOp"] == 0,
    "remapping": lambda run: run["Relu"] == 0,
    "subgraphs": lambda run: run["Exp"] == 1,
    "debug-stripper": lambda run: run["CheckNumerics"] == 0,
}


def seen() -> frozenset[str]:
    """Return which of the visible passes have rewritten a small graph."""
    from steelyard_worker.frameworks.tensorflow import graphs

    _, run = graphs.before_and_after(tf.function(_probe, autograph=False), tf.ones((4, 4)))
    return frozenset(name for name, is_done in VISIBLE.items() if is_done(run))


def _probe(x: tf.Tensor) -> tf.Tensor:
    """Compute one expression for every visible pass, which rewrites nothing else of them."""
    y = tf.cos(tf.constant(1.0) + tf.constant(2.0)) + tf.reduce_sum(tf.pow(x, 2.0))
    y += tf.reduce_sum(tf.exp(x) + tf.exp(x)) + tf.reduce_sum(tf.debugging.check_numerics(x, "not finite"))
    y += tf.reduce_sum(tf.nn.relu(tf.nn.bias_add(tf.matmul(x, x), x[0])))
    with tf.control_dependencies([tf.no_op()]):
        return tf.identity(y)
