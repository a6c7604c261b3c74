"""The knob `passes`: which of Grappler's passes rewrite a graph before it runs."""

from __future__ import annotations

import tensorflow as tf

# The default. The adapter then sets no option.
ALL = "all"
NONE = "none"
OTHERS = "others"
# The passes that Dai et al. 2022 study, in their order, and TensorFlow's options for them.
STUDIED = {
    "pruning": "disable_model_pruning", "folding": "constant_folding", "arithmetic": "arithmetic_optimization",
    "dependency": "dependency_optimization",
}  # fmt: skip
# Two that the document counts as one.
SHOWN_TOGETHER = "arithmetic+dependency"
# Those of the others that have an option and are on unless it is set.
REST = (
    "layout_optimizer", "shape_optimization", "remapping", "loop_optimization", "function_optimization",
    "implementation_selector",
)  # fmt: skip


def choose(value: str) -> None:
    """Set every option as a value of the knob says; it holds for functions that are traced from now on."""
    chosen = STUDIED if value == ALL else value.split("+")
    options = dict.fromkeys(REST, value in (ALL, OTHERS)) | {"disable_meta_optimizer": value == NONE}
    for name, option in STUDIED.items():
        options[option] = (name in chosen) != option.startswith("disable")
    tf.config.optimizer.set_experimental_options(options)


def observed() -> str:
    """Return the value of the knob that TensorFlow's options amount to; an option that was never set is on."""
    options = tf.config.optimizer.get_experimental_options()
    if options["disable_meta_optimizer"]:
        return NONE
    on = [name for name, option in STUDIED.items() if options.get(option, True) != option.startswith("disable")]
    rest = {options.get(name, True) for name in REST}
    if rest == {False}:
        return "+".join(on)
    return {0: OTHERS, len(STUDIED): ALL}.get(len(on), "unknown") if rest == {True} else "unknown"
