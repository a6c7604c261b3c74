"""What the TensorFlow adapter relies on: gradients of parts of a batch add up to those of the whole, in a loop of the graph."""

from checks import accumulation_effects
from checks.tensorflow.shared import adapter_of


def check_parts_of_a_batch_compute_the_same():
    for mode, numbers in (("eager", (2, 4)), ("graph", (2, 4)), ("xla", (4,))):
        accumulation_effects.check_same(
            "tensorflow", lambda parts, mode=mode: adapter_of(mode, accumulate=parts), 1e-5, numbers
        )


def check_a_step_computes_one_part_after_the_other():
    for mode in ("eager", "graph"):
        accumulation_effects.check_parts("tensorflow", adapter_of(mode, accumulate=4), 4)
