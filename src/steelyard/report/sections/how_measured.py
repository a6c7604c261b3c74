"""How a run was measured: protocol, machine, nodes, environments, and the settings that each framework reported."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.analysis import measuring, nodes
from steelyard.report import details
from steelyard.report.blocks import (
    Break,
    Cell,
    Code,
    Column,
    Facts,
    Fold,
    Heading,
    Paragraph,
    Plots,
    Row,
    Table,
    aside,
    plain_table,
)
from steelyard.report.plots import stability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.model import Contender, View
    from steelyard.report.blocks import Block, Part
    from steelyard.report.sections.run_subject import RunSubject
    from steelyard.results.facts import EnvironmentFacts
    from steelyard.results.record import RunRecord

PROTOCOL = "protocol"
ENVIRONMENTS = ("environment", "version", "Python", "created by", "interpreter")


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section."""
    view = subject.view
    parts = (_protocol(view.record), _machine(view), _environments(view.record), _settings(view))
    return [block for part in parts for block in part]


def _protocol(record: RunRecord) -> Iterator[Block]:
    pairs: list[tuple[str, str | tuple[Part, ...]]] = [(PROTOCOL, tuple(_lines(measuring.protocols(record))))]
    pairs += measuring.turns(record)
    pairs += measuring.limits(record)
    pairs += measuring.weights(record)
    pairs += [(f"data of {each.group}", (f"{each.origin} ", Code(each.identity))) for each in measuring.data(record)]
    yield Facts(pairs, named=(PROTOCOL,))


def _lines(texts: Sequence[str]) -> Iterator[Part]:
    for place, text in enumerate(texts):
        if place:
            yield Break()
        yield text


def _machine(view: View) -> Iterator[Block]:
    yield Heading("Machine")
    if stability.recorded(view):
        yield Plots(lambda: [stability.machine(view)])
    if rounds := nodes.rounds(view.disturbances):
        yield Heading("Nodes")
        yield Paragraph((nodes.POOLED,))
        rows = [(name, "; ".join(each)) for name, each in rounds.items()]
        yield plain_table("Nodes", "", ("node", "rounds that count"), rows)
        yield Paragraph(("Each of these machines:",))
    host: dict[str, Any] = dict(view.record.host)
    yield Facts(details.host_facts(host))
    for name, reason in host.get("unknown", {}).items():
        yield aside(f"{name} is unknown: {reason}.")


def _environments(record: RunRecord) -> Iterator[Block]:
    yield Heading("Environments")
    rows = [_environment(name, each) for name, each in record.environments.items()]
    yield Table("Environments", "", tuple(map(Column, ENVIRONMENTS)), rows)
    for name, each in record.environments.items():
        if each["packages"]:
            yield Fold(f"Packages of {name}", [Facts(details.facts(each["packages"]))])


def _environment(name: str, known: EnvironmentFacts) -> Row:
    creator = "the user" if known["external"] else "steelyard"
    texts = (known["version"], known["python_version"], creator)
    return Row(Cell(name), (*map(Cell, texts), Cell(known["python"], code=True)))


def _settings(view: View) -> Iterator[Block]:
    yield Heading("Settings reported by each framework")
    for comparison in view.comparisons:
        for each in comparison.contenders:
            if each.applied:
                yield Fold(f"{each.title} on {comparison.group}", _applied(each))
    options = details.without_tables(asdict(view.record.plan.options))
    yield Fold("Options of this run", [Facts(details.facts(options))])


def _applied(contender: Contender) -> list[Block]:
    libraries = [Heading("Libraries", level=4), Facts(details.facts(contender.libraries))]
    return [Facts(details.facts(contender.applied)), *(libraries if contender.libraries else ())]
