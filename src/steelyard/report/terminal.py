"""The result of a run on a terminal, or as JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steelyard.analysis import (
    asynchronous_ranks,
    formatting,
    graphs,
    published_tables,
    setting_effects,
    shares,
)
from steelyard.analysis.model import Comparison, Contender, View, location_of
from steelyard.profiles.quantities import QUANTITIES as PROFILED
from steelyard.report import ceiling, columns, communication, job_length, scaling_table, terminal_blocks, workload_parts
from steelyard.report.columns import Column
from steelyard.report.sections import OF_COMPARISON, on_terminal
from steelyard.report.sections.run_subject import RunSubject
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results import confusions
from steelyard.results.learning import courses
from steelyard.results.quantities import OF_PHASES, PROCESS, STEP_TIME, in_task
from steelyard.results.repeated import Repeated
from steelyard.statistics.verdicts import Verdict
from steelyard.wording.task_words import fill

COLOURS = {"certified": "green", "rejected": "bold red", "none": "yellow"}


def show(found: View, as_json: bool = False) -> None:
    """Print the result of a run."""
    if as_json:
        print(json.dumps(as_dict(found), indent=1, allow_nan=False))
        return
    print_view(Console(highlight=False), found)


def _print_shares(console: Console, comparison: Comparison) -> None:
    """Print the profiles in single numbers, if there are any."""
    if found := shares.section(comparison):
        console.print()
        console.print(Text("Profiled steps in numbers", style="bold"))
        table = Table(*found.headings, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for row in found.rows:
            table.add_row(*map(Text, row))
        console.print(table)


def print_view(console: Console, view: View) -> None:
    """Print tables, verdicts and warnings."""
    if view.quantity is not STEP_TIME:
        console.print(
            f"\n{formatting.basis(in_task(view.quantity, view.task))} {fill(formatting.RULE, view.task)}", markup=False
        )
    for comparison in view.comparisons:
        _print_comparison(console, comparison, view.comparisons)
    for section in on_terminal():
        terminal_blocks.show(console, section.blocks(RunSubject(view)))


def _print_comparison(console: Console, comparison: Comparison, among: Sequence[Comparison]) -> None:
    console.print()
    title = Text(f"{comparison.title}, {comparison.group}", style="bold")
    console.rule(title, align="left", characters="─", style="dim")
    console.print(Text(formatting.describe(comparison), style="dim"))
    for source in comparison.rankings:
        console.print()
        console.print(Text(formatting.heading(comparison, source), style="bold"))
        measured = [each for each in comparison.contenders if source in each.standings]
        shown = columns.shown(comparison.quantity, comparison.task, console.width)
        console.print(_table(measured, comparison, source, shown))
        headline, verdict = formatting.headline(comparison, source), formatting.below_headline(comparison, source)
        console.print(Text.assemble((headline, "bold"), f" {verdict}" if verdict else ""))
        if comparison.advice[source]:
            console.print(Text(comparison.advice[source]))
    if (found := ceiling.section(comparison, styles([comparison]))) and found.headline:
        console.print(Text(found.headline))
    if length := job_length.section(comparison, styles([comparison])):
        console.print(Text(length.sentence))
    _print_ranks(console, comparison, among)
    _print_exchanges(console, comparison)
    subject = Subject(comparison, among, styles([comparison]))
    terminal_blocks.show(console, OF_COMPARISON["setting effects"](subject))
    _print_shares(console, comparison)
    _print_trainings(console, comparison)
    terminal_blocks.show(console, OF_COMPARISON["learning"](subject))
    remarks = [
        f"{title}: {'' if reason.startswith('Failed') else 'Not measured. '}{reason}"
        for title, reason in workload_parts.missing(comparison)
    ]
    remarks += [
        f"{each.title}: set to {named}." for each in comparison.contenders if (named := formatting.not_in_title(each))
    ]
    remarks += [f"{framework}: {note}" for framework, note in comparison.remarks]
    if remarks:
        console.print()
    for remark in remarks:
        console.print(Text(remark, style="dim"))


def _print_ranks(console: Console, comparison: Comparison, among: Sequence[Comparison]) -> None:
    """Print one line for every strategy, if a training was spread."""
    if found := scaling_table.section(comparison, among):
        console.print()
        console.print(Text(scaling_table.HEADING, style="bold"))
        for line in [*found.in_short, *found.lines]:
            console.print(Text(line))
        if found.of_not_waiting:
            console.print()
            console.print(Text(asynchronous_ranks.HEADING, style="bold"))
        for line in found.of_not_waiting:
            console.print(Text(line))


def _print_exchanges(console: Console, comparison: Comparison) -> None:
    """Print one line on the exchange of every contender, if a training was spread over processes."""
    if (found := communication.section(comparison)) and found.lines:
        console.print()
        console.print(Text(communication.HEADING, style="bold"))
        for line in found.lines:
            console.print(Text(line))


def _print_trainings(console: Console, comparison: Comparison) -> None:
    """Print the times of whole epochs, where there are any."""
    trained = [each for each in comparison.contenders if each.trains_epochs]
    if trained:
        console.print()
        console.print(Text(formatting.EPOCHS, style="bold"))
        shown = [each for each in columns.of_epochs(trained[0].case) if console.width >= each.width]
        console.print(_table(trained, comparison, "", shown))


def _table(contenders: list[Contender], comparison: Comparison, source: str, shown: Sequence[Column]) -> Table:
    """Return a table with two lines per row: the value, and below it the interval."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("framework\nversion, mode", min_width=17, overflow="fold")
    for column in shown:
        table.add_column(column.heading.replace(" ", "\n", 1), no_wrap="throughput" not in column.heading)
    for contender in contenders:
        build = ", ".join(filter(None, (contender.version, contender.mode)))
        cells = (_cell(column, comparison, contender, source) for column in shown)
        table.add_row(Text.assemble((contender.name, "bold"), "\n", (build, "dim")), *cells)
    return table


def _cell(column: Column, comparison: Comparison, contender: Contender, source: str) -> Text:
    value = column.format(comparison, contender, source)
    uncertified = contender.proof.state != "certified"
    style = COLOURS[contender.proof.state] if column.heading == "certified" else "dim" if uncertified else ""
    return Text.assemble((value.value, style), "\n", (value.interval, "dim"))


def as_dict(view: View) -> dict[str, Any]:
    """Return the result as plain values for scripts. Values that are not finite become None.

    Fields of quantities other than the time per step are included only if that quantity is ranked.
    """
    known, quantity = view.record, view.quantity
    found = {
        "run": view.name, "study": known.study, "created": known.created, "state": known.state, "method": known.method,
        "machine": known.machine, "comparisons": [_comparison(each, view.comparisons) for each in view.comparisons],
        "missing": [asdict(each) for each in view.missing],
        "warnings": [asdict(warning) for warning in view.warnings], "folder": str(view.folder),
    }  # fmt: skip
    if view.repeated:
        found["repeated_for_standstill"] = [_repeated(each, view) for each in view.repeated]
    if view.searched:
        found["search"] = asdict(view.searched)
    if view.published:
        found["published"] = [published_tables.as_dict(each) for each in view.published]
    if quantity is not STEP_TIME:
        facts = _picked(quantity, "name", "unit", "more_is_better")
        found["quantity"] = {**facts, "decision": fill(formatting.RULE, view.task)}
    plain: dict[str, Any] = finite(found)
    return plain


def _repeated(attempt: Repeated, view: View) -> dict[str, Any]:
    titles = {each.case.id: each.title for comparison in view.comparisons for each in comparison.contenders}
    return {
        **_picked(attempt, "group", "round", "attempt"),
        "contenders": [titles[key] for key in attempt.still if key in titles],
    }


def finite(value: Any) -> Any:
    """Return plain values with None in place of numbers that are not finite, which JSON cannot express."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _picked(values: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(values, name) for name in names}


def _comparison(comparison: Comparison, among: Sequence[Comparison]) -> dict[str, Any]:
    rankings = comparison.rankings
    spread, exchanges = scaling_table.section(comparison, among), communication.section(comparison)

    def named(each: Contender) -> str:
        return case_name(comparison, each)

    return {
        **_picked(comparison, "group", "title", "task", "batch", "unit", "primary", "reused"),
        "headlines": {source: formatting.headline(comparison, source) for source in rankings},
        "sentences": {source: formatting.verdict(comparison, source) for source in rankings},
        "advice": comparison.advice,
        "verdicts": {
            source: [_verdict(comparison, verdict) for verdict in ranking.verdicts]
            for source, ranking in rankings.items()
        },
        "limits": _limits(comparison),
        "job_length": length_of_job(comparison),
        "contenders": [_contender(comparison, contender) for contender in comparison.contenders],
        "skipped": [asdict(each) for each in comparison.skipped],
        **({"ranks": scaling_table.as_dict(spread, named)} if spread else {}),
        **({"communication": communication.as_dict(exchanges, named)} if exchanges else {}),
        **({"setting_effects": effects} if (effects := setting_effects.as_dict(comparison, named)) else {}),
    }


def _limits(comparison: Comparison) -> dict[str, Any] | None:
    """Return the needs of a step, the machine's limits per second, and the limit that bounds the network; None if unknown."""
    found = ceiling.section(comparison, styles([comparison]))
    if not (found and found.limits):
        return None
    return {
        "headline": found.headline, "sentences": found.sentences, **asdict(found.limits),
        **_picked(found.limits, "intensity", "roof_flops", "bound"),
    }  # fmt: skip


def length_of_job(comparison: Comparison) -> dict[str, Any] | None:
    """Return which contender finishes first from which number of steps on, and the break-even points; None if unknown."""
    found = job_length.section(comparison, styles([comparison]))
    if not found:
        return None
    return {
        "sentence": found.sentence,
        "first": [{"from_steps": steps, "case": case_name(comparison, each)} for steps, each in found.first],
        "pairs": [
            {
                "later": case_name(comparison, pair.later), "sooner": case_name(comparison, pair.sooner),
                "break_even": asdict(pair.found) if pair.found else None,
            }
            for pair in found.pairs
        ],
    }  # fmt: skip


def case_name(comparison: Comparison, contender: Contender) -> str:
    """Return the name of a contender in the JSON of a run."""
    return f"{comparison.group}/{contender.variant}"


def _verdict(comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    names = {contender.case.id: case_name(comparison, contender) for contender in comparison.contenders}
    ratio = comparison.quantity.ratio(verdict)
    values = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
    return asdict(verdict) | values | {"a": names[verdict.a], "b": names[verdict.b]}


def _contender(comparison: Comparison, contender: Contender) -> dict[str, Any]:
    found = {
        "case": case_name(comparison, contender),
        "id": contender.case.id,
        **_picked(contender, "title", "version", "mode", "maintained"),
        "certificate": contender.proof.state,
        "certificate_sentence": contender.proof.sentence,
        "certificate_of_processes": contender.proof.processes,
        "speeds": {source: asdict(speed) for source, speed in contender.speeds.items()},
        "latencies": {name: asdict(each) for name, each in contender.latencies.items()},
        **_picked(contender, "first_step_ns", "to_first_step_ns", "peak_resident_bytes", "peak_device_bytes"),
        "memory_by_phase": {
            each.name: found.value_ns for each in OF_PHASES if (found := location_of(each, contender.trials, PROCESS))
        },
        "evaluation": asdict(contender.evaluation) if contender.evaluation else None,
        "failure": contender.failure,
        "settings": contender.applied,
        "libraries": contender.libraries,
    }
    if contender.profile:
        found["profile"] = {**asdict(contender.profile.breakdown), "files": contender.profile.files}
    if contender.not_profiled:
        found["not_profiled"] = contender.not_profiled
    if contender.profiles:
        levels = {name: shares.level(each, contender) for name, each in PROFILED.items()}
        found["profile_quantities"] = {name: asdict(each) for name, each in levels.items() if each}
    if contender.graphs or contender.no_graph:
        found["graph"] = graphs.as_dict(contender)
    if (matrix := confusions.matrix(contender.trials)) is not None:
        found["confusion"] = matrix.tolist()
    if contender.trains_epochs:
        found["trainings"] = [asdict(each) for each in courses(contender.trials)]
    if comparison.quantity is not STEP_TIME:
        found["standings"] = {source: asdict(standing) for source, standing in contender.standings.items()}
    return found
