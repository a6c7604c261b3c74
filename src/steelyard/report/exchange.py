"""The table of networks that one framework exported and another ran."""

from steelyard.analysis.model import Comparison, Contender
from steelyard.report.details import size
from steelyard.results.events import Exchanged
from steelyard.wording.notation import significant

HEADINGS = ("contender", "written by", "file", "opset", "nodes", "operators", "largest difference", "of outputs up to")
CAPTION = (
    "What a file holds, and the largest difference between an output of the runtime and the same output of the framework "
    "that exported the network, for {} fixed random inputs. Whether all agree with the reference is in the certificates."
)


def rows(comparison: Comparison) -> list[list[str]]:
    """Return one row per contender that ran an exported network, as texts in the order of HEADINGS."""
    found = [(each, _exchanged(each)) for each in comparison.contenders]
    return [_row(contender, exchanged) for contender, exchanged in found if exchanged]


def caption(comparison: Comparison) -> str:
    """Return what the table shows."""
    samples = {str(each.samples) for contender in comparison.contenders if (each := _exchanged(contender))}
    return CAPTION.format(" or ".join(sorted(samples)))


def _exchanged(contender: Contender) -> Exchanged | None:
    return next((trial.exchanged for trial in contender.trials if trial.exchanged), None)


def _row(contender: Contender, exchanged: Exchanged) -> list[str]:
    operators = ", ".join(f"{count} {name}" for name, count in exchanged.operators.items())
    return [
        contender.title, exchanged.producer or "not stated", size(exchanged.bytes), str(exchanged.opset), str(exchanged.nodes),
        operators, f"{exchanged.difference:.1e}", significant(exchanged.largest),
    ]  # fmt: skip
