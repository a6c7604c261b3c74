"""What follows the forward pass: the loss, its gradients, running statistics, and training mode.

Every stage gives both sides the same values, so a difference in one is none in the next: both losses take the first side's
outputs, and gradients are compared where the models agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import UserError
from steelyard.ports import updates
from steelyard.ports.alignment import distance
from steelyard.ports.causes import Place, explain, losses, running_statistics
from steelyard.ports.partners import Files, paired
from steelyard.ports.passes import forward, load
from steelyard.ports.walk import walk
from steelyard.results.port_record import Difference, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.partners import Partners
    from steelyard.ports.passes import Pass
    from steelyard.ports.side_process import SideProcess
    from steelyard.ports.side_tensors import SideTensor
    from steelyard.ports.walk import Inputs

LOSS, GRADIENTS, STATISTICS, TRAINING = "loss", "gradients", "running statistics", "training mode"
SEED = 11
GRADIENT_GROWTH = 10.0
"""A backward pass adds up roundings of a forward pass and its own."""
SMALLEST = 1e-3
"""A gradient below this share of all gradients' norm is compared with the whole, because it may be zero but for rounding."""
OVER_NOISE = 50.0
MOST_DIFFERENCES = 60


@dataclass(frozen=True)
class Trained:
    """Both sides with the same weights. `targets`: arrays that only losses get. `can`: what each side's file and object can.

    `left`, `right`: the tensors of both sides. `agrees`: whether the walk in evaluation mode found no difference.
    """

    of: Inputs
    targets: Mapping[str, Path]
    can: tuple[Mapping[str, bool], Mapping[str, bool]]
    left: Sequence[SideTensor]
    right: Sequence[SideTensor]
    agrees: bool
    in_float64: bool


def stages(trained: Trained) -> Iterator[Stage]:
    """Compare all stages in order; one that a side's file does not allow says so."""
    run = _Training(trained)
    for name, compare in (
        (LOSS, run.loss),
        (GRADIENTS, run.gradients),
        (STATISTICS, run.statistics),
        (TRAINING, run.training),
    ):
        if reason := run.obstacle(name):
            yield Stage(name, reason)
            continue
        trained.of.say(f"Comparing the {name}")
        try:
            yield compare()
        except UserError as error:
            yield Stage(name, str(error), failed=True)
    reason = run.obstacle(updates.FIRST)
    yield from updates.stages(trained.of, trained.left, trained.right, run.known_gradients, reason, trained.in_float64)


class _Training:
    def __init__(self, trained: Trained) -> None:
        self._all, self._of = trained, trained.of
        self._sides = trained.of.left, trained.of.right
        self._batch = {**trained.of.arrays, **trained.targets}
        self.known_gradients: Mapping[str, Array] | None = None
        self._losses_agree = self._has_loss = True

    def obstacle(self, stage: str) -> str:
        """Return why a stage cannot be compared; empty if it can."""
        needs = {LOSS: "loss", GRADIENTS: "loss", updates.FIRST: "optimizer"}.get(stage, "")
        missing = [side.name for side, can in zip(self._sides, self._all.can, strict=True) if needs and not can[needs]]
        if missing:
            return f"{' and '.join(missing)} {'have' if len(missing) > 1 else 'has'} no {needs}()"
        ability = {GRADIENTS: "gradients", STATISTICS: "training", TRAINING: "training", updates.FIRST: "updates"}.get(
            stage, ""
        )
        unable = [
            side.name for side, can in zip(self._sides, self._all.can, strict=True) if ability and not can[ability]
        ]
        if unable:
            return f"objects of the kind of {' and '.join(unable)} are not followed there"
        if stage == GRADIENTS and not self._has_loss:
            return "the loss is not a number"
        if stage in (GRADIENTS, STATISTICS, TRAINING) and not self._all.agrees:
            return "the models differ in evaluation mode already"
        if stage == STATISTICS and not [each for each in self._all.left if not each.trained]:
            return "there are none"
        return ""

    def loss(self) -> Stage:
        """Let both losses take the first side's outputs."""
        first = forward(self._of.left, self._of.arrays)
        second = forward(self._of.right, self._of.arrays)
        given = _in_order(first, second)
        one = self._loss_of(self._of.left, [])
        other = self._loss_of(self._of.right, given)
        apart = distance(np.array([one]), np.array([other]))
        if not np.isfinite([one, other]).all():
            self._has_loss = False
            raise UserError(
                f"{self._of.left.name} computes {one}, {self._of.right.name} {other}: no numbers to compare."
            )
        facts = f"{self._of.left.name} computes {one:.6g}, {self._of.right.name} {other:.6g}"
        if apart <= self._of.tolerance:
            return Stage(LOSS, "", 1, (), facts)
        self._losses_agree = False
        cause, tried = self._cause_of_loss(first, np.array([one]), np.array([other]))
        found = Difference("loss", "loss()", "loss()", "", "", 0.0, apart, cause, tuple(tried))
        return Stage(LOSS, "", 1, (found,), facts)

    def _loss_of(self, side: SideProcess, outputs: list[str]) -> float:
        answer = side.ask("loss", arrays=_texts(self._of.arrays), batch=_texts(self._batch), outputs=outputs)
        return float(answer["loss"])

    def _cause_of_loss(self, first: Pass, one: Array, other: Array) -> tuple[str, list[str]]:
        tried: list[str] = []
        for output in first.outputs.values():
            for target in self._batch.values():
                inputs = {"input": load(output).astype(np.float64), "target": load(target).astype(np.float64)}
                for family in losses.FAMILIES:
                    tried.append(family.name)
                    if cause := explain(family, Place(inputs, {}, one, other), self._of.tolerance):
                        return self._said(cause.family, cause.left_words, cause.right_words), tried
        return "", [*dict.fromkeys(tried)]

    def gradients(self) -> Stage:
        """Compare the gradients of both losses, tensor by tensor; those of unlike losses follow from what was found."""
        ones = self.known_gradients = self._gradients_of(self._of.left)
        if not self._losses_agree:
            return Stage(GRADIENTS, "the losses differ already")
        others = self._gradients_of(self._of.right)
        noise = {} if self._all.in_float64 else self._noise(ones)
        whole = float(np.sqrt(sum(float(np.linalg.norm(each)) ** 2 for each in ones.values())))
        found, compared = [], 0
        for each in paired(self._of.mapping.pairs, ones, others):
            compared += 1
            size = max(float(np.linalg.norm(each.left)), float(np.linalg.norm(each.right)))
            allowed = GRADIENT_GROWTH * self._of.tolerance * max(size, SMALLEST * whole)
            apart = float(np.linalg.norm(each.left - each.right))
            if not apart <= max(allowed, OVER_NOISE * noise.get(each.left_name, 0.0)):
                found.append(self._gradient(each, size))
        return Stage(GRADIENTS, "", compared, tuple(found[:MOST_DIFFERENCES]))

    def _gradients_of(self, side: SideProcess) -> Files:
        folder = side.new_folder()
        answer = side.ask("gradients", folder=str(folder), arrays=_texts(self._of.arrays), batch=_texts(self._batch))
        return Files(answer["gradients"])

    def _noise(self, plain: Mapping[str, Array]) -> dict[str, float]:
        """Return how far weights off by half a unit in the last place move each gradient of the first side."""
        side, generator = self._of.left, np.random.default_rng(SEED)
        folder, files = side.new_folder(), dict[str, str]()
        for number, each in enumerate(self._all.left):
            moved = each.values * (1 + generator.uniform(-1, 1, each.shape) * 2.0**-24)
            np.save(folder / f"{number}.npy", moved.astype(each.values.dtype))
            files[each.name] = str(folder / f"{number}.npy")
        side.ask("load", arrays=files)
        moved_gradients = self._gradients_of(side)
        side.ask("load", arrays={each.name: str(each.path) for each in self._all.left})
        return {name: float(np.linalg.norm(array - moved_gradients[name])) for name, array in plain.items()}

    def _gradient(self, each: Partners, size: float) -> Difference:
        cause = ""
        names = self._of.left.name, self._of.right.name
        for name, array in zip(names, (each.left, each.right), strict=True):
            if float(np.linalg.norm(array)) <= self._of.tolerance * size:
                cause = f"no gradient reaches this tensor in {name}"
        if not cause and size:
            factor = float((each.left * each.right).sum() / (each.left * each.left).sum())
            if distance(factor * each.left, each.right) <= GRADIENT_GROWTH * self._of.tolerance:
                cause = f"the gradient of {names[1]} is {factor:.4g} times that of {names[0]}"
        apart = distance(each.left, each.right)
        return Difference("gradient", each.left_name, each.right_name, "", "", 0.0, apart, cause, ("scaled", "stopped"))

    def statistics(self) -> Stage:
        """Compare what one pass in training mode does to running statistics."""
        names = [{each.name for each in tensors if not each.trained} for tensors in (self._all.left, self._all.right)]
        before = {each.name: each for each in self._all.left}
        passes = [forward(side, self._of.arrays, training=True) for side in self._sides]
        ones, others = (self._values(side, sorted(each)) for side, each in zip(self._sides, names, strict=True))
        found, compared = [], 0
        for each in paired(self._of.mapping.pairs, ones, others):
            compared += 1
            old = np.asarray(before[each.left_name].values, np.float64).reshape(each.left.shape)
            apart = distance(each.left - old, each.right - old)
            if apart > GRADIENT_GROWTH * self._of.tolerance:
                found.append(self._statistic(each, old, passes[0], apart))
        return Stage(STATISTICS, "", compared, tuple(found[:MOST_DIFFERENCES]))

    def _statistic(self, each: Partners, old: Array, first: Pass, apart: float) -> Difference:
        owners = [call for call in first.calls if each.left_name in call.tensors.values() and call.inputs]
        said = ""
        for call in owners:
            role = next(role for role, name in call.tensors.items() if name == each.left_name)
            inputs = {
                "input": load(call.inputs[0]).astype(np.float64),
                "old": old,
                "is variance": np.array("var" in role),
            }
            place = Place(inputs, {}, each.left, each.right)
            if cause := explain(running_statistics.FAMILY, place, GRADIENT_GROWTH * self._of.tolerance):
                said = self._said(cause.family, cause.left_words, cause.right_words)
        tried = (running_statistics.FAMILY.name,)
        return Difference("statistic", each.left_name, each.right_name, "", "", 0.0, apart, said, tried)

    def training(self) -> Stage:
        """Walk through both models in training mode."""
        found = walk(replace(self._of, training=True))
        return Stage(TRAINING, "", len(found.compared) + len(found.outputs), tuple(found.differences))

    def _values(self, side: SideProcess, names: list[str]) -> Files:
        return Files(side.ask("values", folder=str(side.new_folder()), names=names)["files"])

    def _said(self, family: str, left: str, right: str) -> str:
        return f"{family}: {self._of.left.name} has {left}, {self._of.right.name} has {right}"


def _texts(paths: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(path) for name, path in paths.items()}


def _in_order(first: Pass, second: Pass) -> list[str]:
    """Return the files of the first side's outputs in the order of the second side's."""
    files = list(first.outputs.values())
    return [
        str(first.outputs.get(name, files[min(place, len(files) - 1)])) for place, name in enumerate(second.outputs)
    ]
