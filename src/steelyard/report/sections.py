"""The contents of a comparison's section of the page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from steelyard.report import (
    ceiling,
    choosing,
    communication,
    confusion,
    costs,
    exchange,
    explained,
    forest,
    formatting,
    graphs,
    job_length,
    latency,
    learning,
    link_speed,
    losses,
    scaling_table,
    series,
    setting_effects,
    shares,
    stability,
    staleness,
    trainings,
)
from steelyard.report.ceiling import Ceiling
from steelyard.report.columns import Column, of_epochs, of_phases, ranked_by
from steelyard.report.figures import Figure
from steelyard.report.formatting import Formatted
from steelyard.report.job_length import JobLength
from steelyard.report.learning import Learning
from steelyard.report.model import Comparison, Contender
from steelyard.report.styles import Style
from steelyard.report.summaries import Summary, summary

Row = tuple[Contender, Style, list[tuple[Column, Formatted]]]


@dataclass(frozen=True)
class Input:
    """One input of a workload: verdict, table and forest plot."""

    heading: str
    headline: str
    clauses: list[str]
    advice: str
    rows: list[Row]
    forest: Figure | None

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        return [column for column, _ in self.rows[0][2]] if self.rows else []


@dataclass(frozen=True)
class Workload:
    """One comparison on the page; `missing`: (title, reason) of what was not measured or failed.

    `summary` is None if the summary of another seed covers this one.

    `verdict` belongs to the input that decides; the rest to all inputs. `epochs` and `learning` are None where no whole epochs
    were trained, `memory` where no phase has a known peak, `ceiling` where nothing was measured, `length` where fewer than two
    contenders have steady steps. `choice` says what to choose; None where another quantity than the time per step is ranked.
    `exchanged`: rows of the table of exported networks. `scaling` and its table `ranks` are None if no training was spread,
    `exchange_of_ranks` and its table `exchanges` if none was spread over processes. `effects`: of single settings; None where
    no two contenders differ in just one.
    """

    comparison: Comparison
    summary: Summary | None
    verdict: Input
    inputs: list[Input]
    epochs: Input | None
    memory: Input | None
    ceiling: Ceiling | None
    length: JobLength | None
    choice: choosing.Section | None
    explained: explained.Section | None
    shares: shares.Section | None
    learning: Learning | None
    figures: list[Figure]
    missing: list[tuple[str, str]]
    exchanged: list[list[str]]
    graphs: graphs.Section | None
    scaling: scaling_table.Section | None = None
    ranks: Input | None = None
    exchange_of_ranks: communication.Section | None = None
    exchanges: Input | None = None
    effects: setting_effects.Section | None = None
    confusions: list[Figure] = field(default_factory=list)

    @property
    def all_figures(self) -> list[Figure]:
        """The plots of all inputs, the learning curves, and the others."""
        found = [part.forest for part in self.inputs if part.forest]
        found += [self.ceiling.figure] if self.ceiling and self.ceiling.figure else []
        found += [self.length.figure] if self.length else []
        found += self.explained.figures if self.explained else []
        found += [each.figure for each in self.choice.trade_offs] if self.choice else []
        return found + (self.learning.figures if self.learning else []) + self.figures + self.confusions

    @property
    def anchor(self) -> str:
        """The name of the section for links inside the page."""
        return re.sub(r"\W+", "-", self.comparison.group)


def workload(comparison: Comparison, styles: dict[str, Style], among: Sequence[Comparison] = ()) -> Workload:
    """Return the section of a comparison. Of those that differ only in their seed, the first has the curves of all seeds."""
    inputs = {source: _input(comparison, source, styles) for source in comparison.rankings}
    nothing = Input("", "Nothing was measured.", [], "", [], None)
    per_input = (series.step_times, stability.rounds)
    figures = [make(comparison, source, styles) for make in per_input for source in comparison.rankings]
    figures += [
        losses.figure(comparison, styles),
        latency.figure(comparison, styles),
        link_speed.figure(comparison),
        staleness.figure(comparison, styles),
        costs.start(comparison),
        costs.memory(comparison, styles),
    ]
    verdict, shown = inputs.get(comparison.primary, nothing), [figure for figure in figures if figure]
    trained = [each for each in comparison.contenders if each.trains_epochs]
    known = [each for each in comparison.contenders if any(trial.memory for trial in each.trials)]
    columns = of_epochs(trained[0].case) if trained else ()
    spread, exchange_of_ranks = scaling_table.section(comparison, among), communication.section(comparison)
    all_of_run = among or [comparison]
    curves = learning.section(trainings.of_all_seeds(comparison, all_of_run), styles)
    effects = setting_effects.section(comparison)
    answers = [*spread.in_short, *spread.of_not_waiting] if spread else []
    answers += effects.in_short if effects else []
    return Workload(
        comparison, summary(comparison, all_of_run, curves, verdict.headline, verdict.clauses, verdict.advice, answers),
        verdict, list(inputs.values()), _table(formatting.EPOCHS, trained, columns, comparison, styles),
        _table(formatting.PHASES, known, of_phases(comparison.task), comparison, styles),
        ceiling.section(comparison, styles),
        job_length.section(comparison, styles),
        choosing.section(comparison, all_of_run, styles),
        explained.section(comparison), shares.section(comparison),
        curves, shown, missing(comparison),
        exchange.rows(comparison), graphs.section(comparison), spread,
        _of_ranks(scaling_table.HEADING, spread, comparison, styles), exchange_of_ranks,
        _of_ranks(communication.HEADING, exchange_of_ranks, comparison, styles), effects, confusion.plots(comparison),
    )  # fmt: skip


def _of_ranks(
    heading: str, found: scaling_table.Section | communication.Section | None, comparison: Comparison,
    styles: dict[str, Style],
) -> Input | None:  # fmt: skip
    """Return the table of strategies or of exchanges; None if no training was spread."""
    if found is None:
        return None
    return _table(heading, found.contenders, found.columns, comparison, styles, comparison.primary)


def _table(
    heading: str,
    rows: Sequence[Contender],
    columns: Sequence[Column],
    comparison: Comparison,
    styles: dict[str, Style],
    source: str = "",
) -> Input | None:
    """Return a table of its own without a verdict: a row for each of these contenders; None without any."""
    shown: list[Row] = [
        (each, styles[each.variant], [(column, column.format(comparison, each, source)) for column in columns])
        for each in rows
    ]
    return Input(heading, "", [], "", shown, None) if shown else None


def missing(comparison: Comparison) -> list[tuple[str, str]]:
    """Return (title, reason) of what was skipped and of contenders that failed."""
    found = [(each.title, each.reason) for each in comparison.skipped]
    return found + [(contender.title, _failure(contender)) for contender in comparison.contenders if contender.failure]


def _failure(contender: Contender) -> str:
    finished = len(contender.trials)
    shown = "process is shown but not used" if finished == 1 else "processes are shown but not used"
    return f"Failed. {contender.failure}." + (f" Its {finished} finished {shown} in any verdict." if finished else "")


def _input(comparison: Comparison, source: str, styles: dict[str, Style]) -> Input:
    measured = [each for each in comparison.contenders if source in each.standings]
    shown = ranked_by(comparison.quantity, comparison.task)
    rows: list[Row] = [
        (each, styles[each.variant], [(column, column.format(comparison, each, source)) for column in shown])
        for each in measured
    ]
    clauses = [clause.rstrip(".") for clause in formatting.below_headline(comparison, source).split("; ") if clause]
    plot = forest.figure(comparison, source, styles)
    headline, advice = formatting.headline(comparison, source), comparison.advice[source]
    return Input(formatting.heading(comparison, source), headline, clauses, advice, rows, plot)
