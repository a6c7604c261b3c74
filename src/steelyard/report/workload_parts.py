"""The contents of a comparison's section of the page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from steelyard.analysis import headlines, setting_effects, trainings
from steelyard.analysis.learning_curves import learning
from steelyard.analysis.model import Comparison, Contender
from steelyard.analysis.summaries import Summary, summary
from steelyard.report import communication, exchange, scaling_table
from steelyard.report.blocks import ON_PAGE, Block, within
from steelyard.report.blocks import figures as figures_in
from steelyard.report.columns import Column, of_epochs, of_phases, ranked_by
from steelyard.report.figures import Figure
from steelyard.report.plots import (
    confusion,
    forest,
    latency,
    link_speed,
    losses,
    series,
    stability,
    staleness,
)
from steelyard.report.sections import OF_COMPARISON
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import Style
from steelyard.wording.formatted import Formatted

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

    `verdict` belongs to the input that decides; the rest to all inputs. `epochs` is None where no whole epochs
    were trained, `memory` where no phase has a known peak. `exchanged`: rows of the table of exported networks. `scaling` and its
    table `ranks` are None if no training was spread, `exchange_of_ranks` and its table `exchanges` if none was spread over
    processes. `blocks`: by section.
    """

    comparison: Comparison
    summary: Summary | None
    verdict: Input
    inputs: list[Input]
    epochs: Input | None
    memory: Input | None
    figures: list[Figure]
    missing: list[tuple[str, str]]
    exchanged: list[list[str]]
    blocks: dict[str, Sequence[Block]]
    scaling: scaling_table.Section | None = None
    ranks: Input | None = None
    exchange_of_ranks: communication.Section | None = None
    exchanges: Input | None = None
    confusions: list[Figure] = field(default_factory=list)

    @property
    def all_figures(self) -> list[Figure]:
        """The plots of all inputs, the learning curves, and the others."""
        found = [part.forest for part in self.inputs if part.forest]
        found += [figure for blocks in self.blocks.values() for figure in figures_in(blocks)]
        return found + self.figures + self.confusions

    @property
    def anchor(self) -> str:
        """The name of the section for links inside the page."""
        return re.sub(r"\W+", "-", self.comparison.group)


def workload(
    comparison: Comparison, styles: dict[str, Style], among: Sequence[Comparison] = (), run: str = ""
) -> Workload:
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
    ]
    verdict, shown = inputs.get(comparison.primary, nothing), [figure for figure in figures if figure]
    trained = [each for each in comparison.contenders if each.trains_epochs]
    known = [each for each in comparison.contenders if any(trial.memory for trial in each.trials)]
    columns = of_epochs(trained[0].case) if trained else ()
    spread, exchange_of_ranks = scaling_table.section(comparison, among), communication.section(comparison)
    all_of_run = among or [comparison]
    curves = learning(trainings.of_all_seeds(comparison, all_of_run))
    subject = Subject(comparison, all_of_run, styles, run)
    answers = [*spread.in_short, *spread.of_not_waiting] if spread else []
    answers += setting_effects.in_short(comparison)
    return Workload(
        comparison, summary(comparison, all_of_run, curves, verdict.headline, verdict.clauses, verdict.advice, answers),
        verdict, list(inputs.values()), _table(headlines.EPOCHS, trained, columns, comparison, styles),
        _table(headlines.PHASES, known, of_phases(comparison.task), comparison, styles),
        shown, missing(comparison),
        exchange.rows(comparison), {name: within(make(subject), ON_PAGE) for name, make in OF_COMPARISON.items()}, spread,
        _of_ranks(scaling_table.HEADING, spread, comparison, styles), exchange_of_ranks,
        _of_ranks(communication.HEADING, exchange_of_ranks, comparison, styles), confusion.plots(comparison),
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
    clauses = [clause.rstrip(".") for clause in headlines.below_headline(comparison, source).split("; ") if clause]
    plot = forest.figure(comparison, source, styles)
    headline, advice = headlines.headline(comparison, source), comparison.advice[source]
    return Input(headlines.heading(comparison, source), headline, clauses, advice, rows, plot)
