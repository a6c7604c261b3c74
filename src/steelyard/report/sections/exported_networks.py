"""The table of networks that one framework exported and another ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.exported_networks import exported
from steelyard.report.blocks import Panel, aside, plain_table
from steelyard.report.details import size
from steelyard.wording.notation import significant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Contender
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject
    from steelyard.results.events import Exchanged

HEADING = "Exported networks"
HEADINGS = ("contender", "written by", "file", "opset", "nodes", "operators", "largest difference", "of outputs up to")
CAPTION = (
    "What a file holds, and the largest difference between an output of the runtime and the same output of the framework "
    "that exported the network, for {} fixed random inputs. Whether all agree with the reference is in the certificates."
)


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no exported network was run."""
    networks = exported(subject.comparison)
    if not networks:
        return []
    samples = sorted({str(network.samples) for _, network in networks})
    rows = [_row(contender, network) for contender, network in networks]
    table = plain_table(subject.comparison.title, HEADING, HEADINGS, rows)
    return [Panel(HEADING, [aside(CAPTION.format(" or ".join(samples))), table])]


def _row(contender: Contender, network: Exchanged) -> list[str]:
    operators = ", ".join(f"{count} {name}" for name, count in network.operators.items())
    return [
        contender.title,
        network.producer or "not stated",
        size(network.bytes),
        str(network.opset),
        str(network.nodes),
        operators,
        f"{network.difference:.1e}",
        significant(network.largest),
    ]
