"""Recurrent loops for the knob `recurrence`: `tf.while_loop`, and where the gradients of its matrices are summed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.shapes import extent

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors = tuple[tf.Tensor, ...]
    Affine = Callable[[str, tf.Tensor], tf.Tensor]
    Step = Callable[[Affine, Any, Tensors, tf.Tensor | None], tuple[Tensors, Tensors]]

# Number of units per sample of the batch from which "deferred" is the fastest. Adding the gradient of a time step to that of the
# weights costs units x units, storing its gates costs samples x
# units. Measured for LSTMs on two cores: with 2 units per sample the plain loop takes 0.85 times as long as deferred, with 4
# between 1 and 1.7 times, with 8 1.2 times, with 400 six times.
AMPLE = 4


@dataclass(frozen=True)
class Recurrence:
    """How recurrences run: "loop", "hoisted", "deferred", or "auto", which is `small` for layers with few units per sample.

    "loop" is `tf.while_loop` under TensorFlow's differentiation, and a layer's inputs are multiplied inside it: TensorFlow's
    executor runs the products of several steps in parallel with the recurrence. XLA runs operations one after the other, so
    "hoisted", which multiplies before the loop, is better there. "deferred" does the same and moves the gradients of matrices
    out of the loop: the sum over time of products is one product over time.

    TensorFlow's own fused operator (`tf.raw_ops.BlockLSTMV2`) is not offered: on CPU its outputs are right, but finite
    differences show that its gradients are wrong, and it takes 1.3 to 6 times as long as the loop.
    """

    formulation: str = "auto"
    small: str = "loop"

    def resolved(self, units: int, samples: int) -> Recurrence:
        """Return the formulation that "auto" selects for these numbers of units and samples; others are returned unchanged."""
        if self.formulation != "auto":
            return self
        return replace(self, formulation="deferred" if units >= AMPLE * samples else self.small)

    def loop(
        self,
        step: Step,
        weights: dict[str, tf.Tensor],
        added: dict[str, tf.Tensor],
        inputs: tf.Tensor | None,
        shared: Any,
        start: Tensors,
        widths: tuple[int, ...],
        backward: bool = False,
    ) -> tuple[Tensors, list[tf.Tensor]]:
        """Run step(affine, shared, state, inputs_t) -> (state, outputs_t): the last state, and each output stacked (T, N, width).

        affine(name, value (N, in)) is value @ weights[name] + added[name]: a matrix (in, Z), and either a bias (Z,) or the values
        of all steps (T, N, Z), of which each step uses its own. A step uses each name once. Other tensors that are
        differentiated must be passed in `shared`. "auto" must be resolved before. A profile knows the loop by its name scope.
        """
        frames = _Frames(step, inputs, start, widths, backward)
        with tf.name_scope("recurrent"):
            if self.formulation != "deferred":
                return frames.run(weights, added, shared, ())[:2]
            length, samples = next((extent(each, 0), each.shape[1]) for each in added.values() if each.shape.rank == 3)
            at = {name: _over_time(value, length, samples) for name, value in added.items()}
            return frames.run_deferred(weights, at, shared)


def _over_time(value: tf.Tensor, length: int | tf.Tensor, samples: int) -> tf.Tensor:
    return value if value.shape.rank == 3 else tf.broadcast_to(value, (length, samples, *value.shape))


@dataclass(frozen=True)
class _Frames:
    """A loop over time without the tensors that are differentiated."""

    step: Step
    inputs: tf.Tensor | None
    start: Tensors
    widths: tuple[int, ...]
    backward: bool

    def run(
        self, weights: dict[str, tf.Tensor], added: dict[str, tf.Tensor], shared: Any, recorded: tuple[str, ...]
    ) -> tuple[Tensors, list[tf.Tensor], dict[str, tf.Tensor]]:
        """Return the last state, the outputs, and what each matrix in `recorded` was multiplied with: name -> (T, N, in)."""
        over_time = {name: value for name, value in added.items() if value.shape.rank == 3}
        if self.inputs is not None:
            over_time[""] = self.inputs
        length, (samples, _), dtype = (
            extent(next(iter(over_time.values())), 0),
            self.start[0].shape,
            self.start[0].dtype,
        )
        arrays = {name: tf.TensorArray(dtype, length).unstack(value) for name, value in over_time.items()}
        sizes = *self.widths, *(weights[name].shape[0] for name in recorded)

        def body(t: tf.Tensor, state: Tensors, stored: tuple[tf.TensorArray, ...]) -> tuple[Any, ...]:
            place, factors = length - 1 - t if self.backward else t, {}

            def affine(name: str, value: tf.Tensor) -> tf.Tensor:
                factors[name] = value
                return tf.matmul(value, weights[name]) + (arrays[name].read(place) if name in arrays else added[name])

            state, outputs = self.step(affine, shared, state, arrays[""].read(place) if "" in arrays else None)
            values = *outputs, *(factors[name] for name in recorded)
            return t + 1, state, tuple(array.write(place, value) for array, value in zip(stored, values, strict=True))

        stored = tuple(tf.TensorArray(dtype, length, element_shape=(samples, size)) for size in sizes)
        loop = tf.while_loop(lambda t, *_: t < length, body, (0, self.start, stored), maximum_iterations=length)
        _, state, stored = loop
        stacked = [array.stack() for array in stored]
        return state, stacked[: len(self.widths)], dict(zip(recorded, stacked[len(self.widths) :], strict=True))

    def run_deferred(
        self, weights: dict[str, tf.Tensor], added: dict[str, tf.Tensor], shared: Any
    ) -> tuple[Tensors, list[tf.Tensor]]:
        """Run with gradients of `weights` that are computed after the loop, from those of `added` and the recorded factors."""
        names, given = tuple(weights), (weights, added, shared)

        @tf.custom_gradient
        def run(*flat: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., list[tf.Tensor]]]:
            weights, added, shared = tf.nest.pack_sequence_as(given, flat)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch((added, shared))
                state, outputs, factors = self.run(weights, added, shared, names)
            results = [*state, *outputs]

            def gradient(*of_results: tf.Tensor) -> list[tf.Tensor]:
                with tf.name_scope("recurrent"):
                    of_added, of_shared = tape.gradient(results, (added, shared), list(of_results))
                    of_weights = {name: tf.tensordot(factors[name], of_added[name], ((0, 1), (0, 1))) for name in names}
                    return tf.nest.flatten((of_weights, of_added, of_shared))

            return results, gradient

        results = run(*tf.nest.flatten(given))
        return tuple(results[: len(self.start)]), results[len(self.start) :]
