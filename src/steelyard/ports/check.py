"""A port check: start both sides, map their tensors, give both the same weights, and walk through the models."""

from __future__ import annotations

import datetime as dt
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports import given_inputs, loaders, map_file, mapping, side_tensors, training
from steelyard.ports.alignment import distance, nearest
from steelyard.ports.passes import forward, load
from steelyard.ports.side_process import SideProcess
from steelyard.ports.training import Trained
from steelyard.ports.walk import Inputs, Walk, walk
from steelyard.results.port_record import Mapped, PortRecord, Side, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Mapping as Table

    from steelyard.ports.definition import Port
    from steelyard.ports.mapping import Mapping, Pair
    from steelyard.ports.side_tensors import SideTensor

    Answers = tuple[tuple[dict[str, Any], Path], tuple[dict[str, Any], Path]]

EXACT, SINGLE = "float64", "float32"
IN_FLOAT64 = 1e-7
"""What a constant that was rounded to float32 moves; no user in float32 sees less. The rounding of float64 is far below it."""
PERTURBED_RUNS = 2
OVER_NOISE = 50.0
LEAST_IN_FLOAT32 = 4e-6
SEED = 7


def check(port: Port, pythons: Table[str, Path], say: Callable[[str], None], limit_s: float) -> PortRecord:
    """Compare the two sides of a port. `pythons`: the interpreter of each side. UserError: a side cannot be asked."""
    with tempfile.TemporaryDirectory(prefix="steelyard-port-") as temporary:
        return _Check(port, pythons, Path(temporary), say, limit_s).run()


class _Check:
    def __init__(
        self, port: Port, pythons: Table[str, Path], folder: Path, say: Callable[[str], None], limit_s: float
    ) -> None:
        self._port, self._pythons, self._folder, self._say, self._limit_s = port, pythons, folder, say, limit_s
        self._starts = 0
        self._arrays = self._written("inputs", given_inputs.arrays(port, port.inputs))
        self._targets = self._written("targets", given_inputs.arrays(port, port.targets))

    def run(self) -> PortRecord:
        with self._started() as (left, right):
            self._say("Describing both models")
            answers = self._described(left), self._described(right)
            tensors = [side_tensors.of_answer(*answer) for answer in answers]
            self._say(f"Mapping {len(tensors[0])} and {len(tensors[1])} tensors")
            given = map_file.read(self._port.folder, tensors[0], tensors[1])
            known = mapping.find(tensors[0], tensors[1], given)
            first, second = self._port.sides
            map_file.write(self._port.folder, known, (first.name, second.name))
            if all(side.ask("double")["double"] for side in (left, right)):
                self._give_weights(known, tensors, right)
                if self._computes_in_float64(left, right):
                    of = Inputs(left, right, self._arrays, known, _by_name(tensors[0]), IN_FLOAT64, self._say)
                    return self._record(answers, tensors, of, *self._compared(of, answers, tensors, EXACT), EXACT)
        self._say("One side does not compute in float64, so both compute in float32")
        with self._started() as (left, right):
            for side in (left, right):
                self._described(side)
            self._give_weights(known, tensors, right)
            tolerance = self._noise(left, tensors[0])
            of = Inputs(left, right, self._arrays, known, _by_name(tensors[0]), tolerance, self._say)
            return self._record(answers, tensors, of, *self._compared(of, answers, tensors, SINGLE), SINGLE)

    @contextmanager
    def _started(self) -> Iterator[tuple[SideProcess, SideProcess]]:
        """Start both processes; the folder of their arrays is new each time."""
        self._starts += 1
        with ExitStack() as stack:
            sides = []
            for spec in self._port.sides:
                folder = self._folder / f"{spec.name}-{self._starts}"
                python, file = self._pythons[spec.name], spec.path(self._port.folder)
                side = SideProcess(spec.name, python, file, folder, self._limit_s)
                stack.callback(side.close)
                sides.append(side)
            yield sides[0], sides[1]

    def _described(self, side: SideProcess) -> tuple[dict[str, Any], Path]:
        folder = side.new_folder()
        return side.ask("describe", folder=str(folder)), folder

    def _written(self, kind: str, arrays: Table[str, Any]) -> dict[str, Path]:
        folder = self._folder / kind
        folder.mkdir()
        paths = {name: folder / f"{number}.npy" for number, name in enumerate(arrays)}
        for name, array in arrays.items():
            np.save(paths[name], array, allow_pickle=False)
        return paths

    def _computes_in_float64(self, left: SideProcess, right: SideProcess) -> bool:
        passes = [forward(side, self._arrays) for side in (left, right)]
        return all(load(path).dtype == np.float64 for each in passes for path in each.outputs.values())

    def _give_weights(self, known: Mapping, tensors: list[list[SideTensor]], right: SideProcess) -> None:
        """Copy the left side's weights to the right side where the values differ; the user's files are not touched."""
        left = {each.name: each for each in tensors[0]}
        shapes = {each.name: each.shape for each in tensors[1]}
        folder, files = right.new_folder(), dict[str, str]()
        for pair in known.pairs:
            if pair.equal or len(pair.left) != 1 or len(pair.right) != 1:
                continue
            array = pair.transform.apply(left[pair.left[0]].values)
            if array.shape == shapes[pair.right[0]]:
                path = folder / f"{len(files)}.npy"
                np.save(path, array, allow_pickle=False)
                files[pair.right[0]] = str(path)
        if files:
            self._say(f"Copying {len(files)} tensors of {self._port.sides[0].name} whose values differ")
            right.ask("load", arrays=files)

    def _noise(self, left: SideProcess, tensors: list[SideTensor]) -> float:
        """Return what counts as rounding in float32: several times what weights off by half a unit in the last place change."""
        plain = forward(left, self._arrays)
        generator = np.random.default_rng(SEED)
        largest = 0.0
        for _ in range(PERTURBED_RUNS):
            files, folder = {}, left.new_folder()
            for number, each in enumerate(tensors):
                values = each.values
                moved = values * (1 + generator.uniform(-1, 1, values.shape) * 2.0**-24)
                np.save(folder / f"{number}.npy", moved.astype(values.dtype))
                files[each.name] = str(folder / f"{number}.npy")
            left.ask("load", arrays=files)
            moved_pass = forward(left, self._arrays)
            for one, other in zip(plain.calls, moved_pass.calls, strict=False):
                if one.outputs and other.outputs:
                    largest = max(largest, distance(load(one.outputs[0]), load(other.outputs[0])))
        left.ask("load", arrays={each.name: str(each.path) for each in tensors})
        return max(LEAST_IN_FLOAT32, OVER_NOISE * largest)

    def _compared(
        self, of: Inputs, answers: Answers, tensors: list[list[SideTensor]], precision: str
    ) -> tuple[Walk, tuple[Stage, ...]]:
        self._say("Comparing outputs and modules in evaluation mode")
        found = walk(of)
        agrees = not (found.differences or found.unpaired or found.without_numbers)
        can = answers[0][0]["can"], answers[1][0]["can"]
        trained = Trained(of, self._targets, can, tensors[0], tensors[1], agrees, precision == EXACT)
        return found, (*training.stages(trained), self._loaders((of.left, of.right), can))

    def _loaders(self, sides: tuple[SideProcess, SideProcess], can: tuple[dict[str, bool], dict[str, bool]]) -> Stage:
        self._say("Comparing the batches of the loaders")
        return loaders.stage(sides, can)

    def _record(
        self,
        answers: Answers,
        tensors: list[list[SideTensor]],
        of: Inputs,
        found: Walk,
        stages: tuple[Stage, ...],
        precision: str,
    ) -> PortRecord:
        known = of.mapping
        values = [{each.name: each for each in side} for side in tensors]
        sides = [
            Side(
                spec.name,
                spec.framework,
                answer["kind"],
                answer["libraries"],
                len(of_side),
                sum(int(np.prod(each.shape)) for each in of_side if each.trained and not each.shares),
            )
            for spec, (answer, _), of_side in zip(self._port.sides, answers, tensors, strict=True)
        ]
        return PortRecord(
            port=self._port.folder.name,
            date=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            left=sides[0],
            right=sides[1],
            mapped=tuple(_mapped(pair, *values) for pair in known.pairs),
            only_left=tuple(known.only_left),
            only_right=tuple(known.only_right),
            precision=precision,
            tolerance=of.tolerance,
            outputs=found.outputs,
            compared=tuple(found.compared),
            differences=tuple(found.differences),
            unpaired_outputs=found.unpaired,
            without_numbers=found.without_numbers,
            training=stages,
            unfinished="" if found.is_whole else "There are more differences than a walk looks for.",
        )


def _by_name(tensors: list[SideTensor]) -> dict[str, SideTensor]:
    return {each.name: each for each in tensors}


def _mapped(pair: Pair, left: Table[str, SideTensor], right: Table[str, SideTensor]) -> Mapped:
    how = pair.transform.words
    if len(pair.left) + len(pair.right) > 2:
        how = ", ".join(filter(None, ("added" if pair.is_sum else f"joined along axis {pair.along}", how)))
    apart = 0.0
    if not pair.equal:
        compared = nearest(left[pair.left[0]].values, right[pair.right[0]].values)
        apart = float("inf") if compared is None else compared[0]
    return Mapped(pair.left, pair.right, how, pair.found_by, pair.equal, apart)
