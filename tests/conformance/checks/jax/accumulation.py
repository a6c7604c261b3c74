"""What the JAX adapter relies on: gradients of parts of a batch add up to those of the whole, in a scan of the program."""

from checks import accumulation_effects
from checks.jax.shared import adapter_of


def check_parts_of_a_batch_compute_the_same():
    accumulation_effects.check_same("jax", lambda parts: adapter_of(precision="float64", knobs={"accumulate": parts}))


def check_a_step_computes_one_part_after_the_other():
    accumulation_effects.check_parts("jax", adapter_of(knobs={"accumulate": 4}), 4)
