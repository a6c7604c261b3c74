"""The certificate of every contender, with its details in folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.formatting import EQUAL
from steelyard.report import details
from steelyard.report.blocks import Facts, Fold, Heading, Paragraph, Proof, Proofs, plain_table
from steelyard.report.terms import TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.model import Contender
    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject

BADGES = {"certified": "certified", "rejected": "rejected", "none": "no certificate"}
RULE = "Numbers without a certificate are marked and not used in any verdict."
SHOWN_ELSEWHERE = ("passed", "sentence")


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section."""
    content: list[Block] = [Paragraph((f"{TERMS['certificate']} {RULE}",))]
    for comparison in subject.view.comparisons:
        content.append(Heading(comparison.title, code=comparison.group))
        content.append(Proofs([_proof(each) for each in comparison.contenders]))
    return content


def _proof(contender: Contender) -> Proof:
    proof = contender.proof
    more = [Fold(f"Detail for {contender.title}", _details(contender))] if proof.details else []
    badge = f"{EQUAL} (port check)" if proof.by_port_check and proof.state == "certified" else BADGES[proof.state]
    text = f"{proof.sentence} {proof.processes}"
    return Proof(f"proof-{contender.case.id}", proof.state, badge, contender.title, text, more)


def _details(contender: Contender) -> list[Block]:
    values = {name: value for name, value in contender.proof.details.items() if name not in SHOWN_ELSEWHERE}
    facts = [(name.replace("_", " "), text) for name, text in details.facts(details.without_tables(values))]
    return [Facts(facts), *(plain_table("", *table) for table in details.tables(values))]
