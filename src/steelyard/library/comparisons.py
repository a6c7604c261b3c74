"""A comparison of a run for programs: contenders, ratios with intervals, and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.analysis import formatting, headlines, verdict_rows
from steelyard.analysis.compare import pick
from steelyard.errors import UserError, nearest
from steelyard.library.tables import Table
from steelyard.results.quantities import PROCESS
from steelyard.results.quantities import quantity as quantity_named
from steelyard.statistics.sentences import verdict_sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analysis import model
    from steelyard.results.trials import Trial
    from steelyard.statistics.verdicts import Kind
    from steelyard_worker.case import Case


@dataclass(frozen=True)
class Pair:
    """Two contenders. `value`: a over b of the ranked quantity, with the interval `low` to `high` over `rounds` rounds.

    `verdict`: "better" or "worse" of a, "equal" within the margin of the run, or "undecided". The error of all verdicts of a
    table together is 5 %.
    """

    a: str
    b: str
    quantity: str
    value: float
    low: float
    high: float
    rounds: int
    verdict: Kind
    sentence: str

    def __str__(self) -> str:
        """Return the verdict as a sentence."""
        return self.sentence


@dataclass(frozen=True, repr=False)
class Process:
    """One process of a contender. `round`: its number; `folder`: its files."""

    trial: Trial

    def __repr__(self) -> str:
        """Return the name of its folder."""
        return f"<Process {self.trial.folder.name}>"

    @property
    def round(self) -> int:
        """The number of its round, from 1."""
        return self.trial.job.round

    @property
    def folder(self) -> str:
        """The path of its folder."""
        return str(self.trial.folder)

    def value(self, quantity: str = "step time", input: str = "") -> float | None:  # noqa: A002 - the word of the records
        """Return a quantity of the process in its unit (times in nanoseconds, memory in bytes); None if it has none.

        `input`: "pipeline" or "cached" (default: the first that was measured).
        """
        known = quantity_named(quantity)
        source = PROCESS if known.per_process else input or self.trial.job.schedule.inputs[0]
        value: float | None = known.read(self.trial, source)
        return value

    def steps(self, input: str = "") -> NDArray[np.float64]:  # noqa: A002
        """Return the time per step of each counted block on an input, in nanoseconds, in order: float64, shape [blocks]."""
        source = input or self.trial.job.schedule.inputs[0]
        return np.array(
            [
                block.elapsed_ns / block.steps
                for block in self.trial.blocks
                if (block.phase, block.input) == ("counted", source)
            ]
        )


@dataclass(frozen=True, repr=False)
class Contender:
    """One framework in one version, mode and set of settings, as it was measured."""

    measured: model.Contender

    def __repr__(self) -> str:
        """Return its name and version."""
        return f"<Contender {self.name} {self.version}>"

    @property
    def name(self) -> str:
        """Its name in the group, such as `pytorch/compile`."""
        return self.measured.variant

    @property
    def title(self) -> str:
        """Its name in tables."""
        return self.measured.title

    @property
    def framework(self) -> str:
        """The name of its framework."""
        return self.measured.case.framework

    @property
    def version(self) -> str:
        """The version of its framework."""
        return self.measured.version

    @property
    def case(self) -> Case:
        """Everything that decides what was measured."""
        return self.measured.case

    @property
    def certified(self) -> bool:
        """Whether it was proved to compute the same as the reference."""
        return self.measured.proof.state == "certified"

    @property
    def certificate(self) -> str:
        """What was compared, or what differs, in a sentence."""
        return self.measured.proof.sentence

    @property
    def failure(self) -> str:
        """Why it has no valid result; empty if it has one."""
        return self.measured.failure or self.measured.above_peak

    @property
    def trials(self) -> list[Process]:
        """Its processes, one for each round, in order."""
        return [Process(trial) for trial in sorted(self.measured.trials, key=lambda trial: trial.job.round)]


@dataclass(frozen=True, repr=False)
class Comparison:
    """Contenders that were compared on one workload, best first."""

    measured: model.Comparison

    @property
    def name(self) -> str:
        """The name of the group, such as `resnet18:digits`."""
        return self.measured.group

    @property
    def title(self) -> str:
        """The name of the workload."""
        return self.measured.title

    @property
    def inputs(self) -> list[str]:
        """The inputs that were ranked, the one that decides first: "pipeline", "cached" or "process"."""
        return sorted(self.measured.rankings, key=lambda source: source != self.measured.primary)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if not self.measured.rankings:
            return "Nothing was measured."
        return headlines.headline(self.measured, self.measured.primary)

    @property
    def contenders(self) -> list[Contender]:
        """All contenders, best first."""
        return [Contender(contender) for contender in self.measured.contenders]

    def contender(self, name: str) -> Contender:
        """Return a contender by its name, or by its framework or environment. UserError: there is none, or several."""
        return Contender(self._one(name))

    def ratio(self, a: str, b: str, input: str = "") -> Pair:  # noqa: A002
        """Return the ratio of `a` to `b` with its verdict, on an input (default: the one that decides).

        UserError: the two have no round in common, or one of them has no valid, certified result.
        """
        source = self._input(input)
        left, right = self._one(a), self._one(b)
        verdict = self.measured.rankings[source].between(left.case.id, right.case.id)
        if verdict is None:
            raise UserError(
                f"{left.title} and {right.title} are not compared in {self.name}: both need a valid, certified result in the "
                "same round."
            )
        ratio, quantity = self.measured.quantity.ratio(verdict), self.measured.quantity
        titles = {contender.case.id: contender.in_text for contender in (left, right)}
        sentence = verdict_sentence(verdict, titles, quantity.wording)
        return Pair(
            left.variant,
            right.variant,
            quantity.name,
            ratio.value,
            ratio.low,
            ratio.high,
            verdict.rounds,
            verdict.kind,
            f"{sentence}.",
        )

    def table(self, input: str = "") -> Table:  # noqa: A002
        """Return the verdict table of an input (default: the one that decides)."""
        return table_of([(self.measured, self._input(input))])

    def __repr__(self) -> str:
        """Return its name and its verdict."""
        return f"{self.name}: {self.headline}"

    def _repr_html_(self) -> str:
        """Return the verdict table, which notebooks show."""
        return self.table()._repr_html_()

    def _one(self, name: str) -> model.Contender:
        chosen = pick(self.measured, name)
        if chosen is None:
            known = [contender.variant for contender in self.measured.contenders]
            raise UserError(f"{self.name} has no contender '{name}'.{nearest(name, known)}")
        return chosen

    def _input(self, name: str) -> str:
        known = self.inputs
        if not known:
            raise UserError(f"Nothing was measured in {self.name}.")
        if name and name not in known:
            raise UserError(f"{self.name} has no input '{name}'; it has {', '.join(known)}.")
        return name or known[0]


def table_of(parts: list[tuple[model.Comparison, str]]) -> Table:
    """Return one table of several (comparison, input) pairs."""
    found = [row for comparison, source in parts for row in verdict_rows.rows(comparison, source)]
    texts = [
        (formatting.standing(comparison, contender, source), formatting.ratio(comparison, contender, source))
        for comparison, source in parts
        for contender in comparison.contenders
        if source in contender.standings
    ]
    quantity = parts[0][0].quantity if parts else None
    shown = [
        ("workload", [row.group for row in found]),
        ("input", [row.input for row in found]),
        ("contender", [f"{row.title} {row.version}".strip() for row in found]),
        (quantity.label if quantity else "value", [str(value) for value, _ in texts]),
        ("ratio to the best", [str(ratio) for _, ratio in texts]),
        ("certificate", [row.certificate for row in found]),
    ]
    sentences = tuple(headlines.headline(comparison, source) for comparison, source in parts)
    return Table([vars(row) for row in found], sentences, shown)
