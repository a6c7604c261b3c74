"""Forward and backward passes of the stages of a network, as one program for each stage and direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax.cutting import Stage, differentiable

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors = dict[str, jax.Array]


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["structure", "places"])
@dataclass
class Saved:
    """The values that a forward pass keeps for the backward pass, except its own arguments, which would be copied.

    `places`: for each kept value, -1, or which argument it is.
    """

    values: list[Any]
    structure: Any
    places: tuple[int, ...]

    @classmethod
    def of(cls, pull: Any, arguments: Any) -> Saved:
        """Return what is kept of a function of `jax.vjp`."""
        known = {id(each): place for place, each in enumerate(jax.tree.leaves(arguments))}
        leaves, structure = jax.tree.flatten(pull)
        places = tuple(known.get(id(each), -1) for each in leaves)
        return cls([each for each, place in zip(leaves, places, strict=True) if place < 0], structure, places)

    def pull(self, arguments: Any) -> Any:
        """Return the function of `jax.vjp` again."""
        values, given = iter(self.values), jax.tree.leaves(arguments)
        return jax.tree.unflatten(self.structure, [given[at] if at >= 0 else next(values) for at in self.places])


class Passes:
    """The programs for micro-batches of one shape. `owned`: the tensors of each stage, without those of an earlier one."""

    def __init__(
        self, stages: list[Stage], structure: Any, loss: Callable[..., Any], devices: list[jax.Device]
    ) -> None:
        self.stages, self._structure, self._devices = stages, structure, devices
        # Place of every output among the results of the stages; the others are new statistics, which have no gradients.
        self._outputs: dict[str, int] = jax.tree.unflatten(structure, range(structure.num_leaves))[0]
        owner: dict[str, int] = {}
        for number, stage in enumerate(stages):
            for name in stage.tensors:
                owner.setdefault(name, number)
        self.owned = [[name for name in owner if owner[name] == number] for number in range(len(stages))]
        self._owner = owner
        places = frozenset(self._outputs.values())
        self._forward = [jax.jit(partial(_forward, stage, places)) for stage in stages]
        self._backward = [jax.jit(_backward, donate_argnums=3) for _ in stages]
        self._loss = jax.jit(partial(_loss, loss))

    def run(
        self, trained: list[Tensors], fixed: list[Tensors], placed: list[list[Tensors]], whole: Tensors
    ) -> tuple[jax.Array, Tensors, list[list[Tensors]], list[Tensors]]:
        """Return the loss, the outputs, the gradients of each stage in parts, and the tensors that are not trained."""
        own = [self._read(trained, number) for number in range(len(self.stages))]
        kept, ends = [], []
        for micro in placed:
            saved, results, fixed = self._onward(own, fixed, micro)
            kept.append(saved)
            ends.append(results)
        loss, outputs, cotangents = self._loss(ends, whole)
        sums: list[Any] = [None] * len(self.stages)
        for saved, cotangent in zip(kept, cotangents, strict=True):
            self._back(saved, cotangent, sums)
        return loss, outputs, self._returned(sums), fixed

    def _read(self, tensors: list[Tensors], number: int) -> Tensors:
        """Return the tensors that a stage reads, copies of those of other stages among them."""
        found = {}
        for name in self.stages[number].tensors:
            if name in tensors[self._owner[name]]:
                found[name] = self._to(tensors[self._owner[name]][name], number, self._owner[name])
        return found

    def _to(self, value: Any, number: int, origin: int) -> Any:
        return value if number == origin else jax.device_put(value, self._devices[number])

    def _onward(
        self, own: list[Tensors], fixed: list[Tensors], micro: list[Tensors]
    ) -> tuple[Any, Tensors, list[Tensors]]:
        """Return (what is kept, outputs on the last device, tensors that are not trained) of one micro-batch."""
        values: dict[int, tuple[int, jax.Array]] = {}
        ends: dict[int, tuple[int, jax.Array]] = {}
        kept = []
        for number, stage in enumerate(self.stages):
            incoming = {each: self._to(values[each][1], number, values[each][0]) for each in stage.incoming}
            rest = {each: value for each, value in incoming.items() if not differentiable(value)}
            entering = {each: value for each, value in incoming.items() if each not in rest}
            arguments = (own[number], entering, rest, self._read(fixed, number), micro[number])
            (leaving, ending), (others, results), saved = self._forward[number](*arguments)
            kept.append((saved, arguments, list(leaving), list(ending)))
            values |= {each: (number, value) for each, value in (leaving | others).items()}
            ends |= {place: (number, value) for place, value in ending.items()}
            ends |= {place: (number, value) for place, value in results.items()}
        outputs, statistics = jax.tree.unflatten(self._structure, [ends[place] for place in sorted(ends)])
        last = len(self.stages) - 1
        moved = {name: self._to(value, last, number) for name, (number, value) in outputs.items()}
        fixed = [
            each
            | {
                name: self._to(statistics[name][1], number, statistics[name][0])
                for name in each.keys() & statistics.keys()
            }
            for number, each in enumerate(fixed)
        ]
        return kept, moved, fixed

    def _back(self, kept: Any, cotangent: Tensors, sums: list[Any]) -> None:
        """Add the gradients of one micro-batch to the sums of each stage."""
        last = len(self.stages) - 1
        of_values: dict[int, Any] = {}
        for number in range(last, -1, -1):
            saved, arguments, leaving, ending = kept[number]
            names = {place: name for name, place in self._outputs.items()}
            given = (
                {each: of_values.pop(each) for each in leaving},
                {place: self._to(cotangent[names[place]], number, last) for place in ending},
            )
            sums[number], of_incoming = self._backward[number](saved, arguments, given, sums[number])
            for each, value in of_incoming.items():
                origin = next(before for before, stage in enumerate(self.stages) if each in stage.outgoing)
                moved = self._to(value, origin, number)
                of_values[each] = of_values[each] + moved if each in of_values else moved

    def _returned(self, sums: list[Tensors]) -> list[list[Tensors]]:
        """Return the gradients by owner: its own sum first, then what other stages send back."""
        found = [[{name: own[name] for name in own if self._owner[name] == number}] for number, own in enumerate(sums)]
        for number, own in enumerate(sums):
            for owner in sorted({self._owner[name] for name in own} - {number}):
                part = {name: own[name] for name in own if self._owner[name] == owner}
                found[owner].append(jax.device_put(part, self._devices[owner]))
        return found


def _forward(
    stage: Stage, outputs: frozenset[int], trained: Any, smooth: Any, rest: Any, fixed: Any, inputs: Any
) -> Any:
    """Return what has gradients (outgoing, outputs), what has none (outgoing, statistics), and what the backward pass needs."""

    def compute(trained: Any, smooth: Any) -> Any:
        outgoing, results = stage.run(trained | fixed, inputs, smooth | rest)
        leaving = {each: value for each, value in outgoing.items() if differentiable(value)}
        ending = {place: value for place, value in results.items() if place in outputs}
        others = {each: value for each, value in outgoing.items() if each not in leaving}
        return (leaving, ending), (others, {place: value for place, value in results.items() if place not in outputs})

    found, pull, others = jax.vjp(compute, trained, smooth, has_aux=True)
    return found, others, Saved.of(pull, (trained, smooth, rest, fixed, inputs))


def _backward(saved: Saved, arguments: Any, given: Any, sums: Any) -> Any:
    """Return (sums with the gradients of this pass added, gradients of the incoming values)."""
    gradients, of_incoming = saved.pull(arguments)(given)
    if sums is not None:
        gradients = {name: gradient + sums[name] for name, gradient in gradients.items()}
    return gradients, of_incoming


def _loss(loss: Callable[..., Any], ends: list[Tensors], whole: Tensors) -> tuple[jax.Array, Tensors, list[Tensors]]:
    """Return the loss of the whole batch, its outputs, and the gradients of the outputs of each micro-batch."""

    def compute(ends: list[Tensors]) -> tuple[jax.Array, Tensors]:
        outputs = {name: jnp.concatenate([each[name] for each in ends]) for name in ends[0]}
        return loss(outputs, whole), outputs

    (value, outputs), cotangents = jax.value_and_grad(compute, has_aux=True)(ends)
    return value, outputs, cotangents
