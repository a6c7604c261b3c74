"""Conditions for a choice: the network can be exported, and the framework is maintained."""

from collections.abc import Iterable
from dataclasses import dataclass

from steelyard.report.model import Comparison, Contender
from steelyard.statistics.sentences import listed
from steelyard_worker.case import INFERENCE


@dataclass(frozen=True)
class Met:
    """A sentence on which contenders meet a condition; `unmet` has the case ids of the others."""

    sentence: str
    unmet: list[str]


def met(condition: str, contenders: list[Contender], among: Iterable[Comparison]) -> Met:
    """Return which contenders (at least one is given) meet a condition. `among`: all comparisons of the run."""
    return _maintained(contenders) if condition == "maintained" else _exported(contenders, among)


def _maintained(contenders: list[Contender]) -> Met:
    unmet = [each.case.id for each in contenders if not each.maintained]
    parts = []
    for is_maintained, word in ((True, "Maintained"), (False, "Retired")):
        facts = {each.facts.title: each.facts for each in contenders if each.maintained == is_maintained}
        sources = {title: each.maintained_source for title, each in facts.items()}
        names = [f"{title} ({source})" if source else title for title, source in sources.items()]
        parts += [f"{word}: {listed(names)}."] if names else []
    return Met(" ".join(parts), unmet)


def _exported(contenders: list[Contender], among: Iterable[Comparison]) -> Met:
    """Return whose networks can be exported: certified in a runtime by this run, or known to be possible."""
    exported = [each for comparison in among for each in comparison.contenders if _exporter(each)]
    certified, unchecked, unknown = dict[str, Contender](), dict[str, Contender](), dict[str, Contender]()
    unmet, refused = [], []
    for each in contenders:
        found = [other for other in exported if other is each or _is_export(other, each)]
        if any(_works(other) for other in found):
            certified[each.title] = each
        elif found:
            unmet.append(each.case.id)
            reason = found[0].failure.rpartition(" (")[0] or found[0].proof.sentence
            refused.append(f"Not {each.title}: {reason.rstrip('.')}.")
        elif each.facts.exported_to:
            unchecked[each.facts.title] = each
        else:
            unknown[each.facts.title] = each
            unmet.append(each.case.id)
    parts = [f"Certified as an exported network: {'; '.join(certified)}."] if certified else []
    parts += refused
    parts += [_unchecked(unchecked)] if unchecked else []
    parts += [f"No export of networks of {listed(list(unknown))} is known to this run."] if unknown else []
    return Met(" ".join(parts), unmet)


def _unchecked(found: dict[str, Contender]) -> str:
    """Return the sentence that these frameworks can export the network, and the command that would certify the result."""
    case = next(iter(found.values())).case
    runtimes = sorted({name for each in found.values() for name in each.facts.exported_to})
    chosen = " ".join(f"-f {name}" for name in (*(each.case.framework for each in found.values()), *runtimes))
    return (
        f"Possible, but not certified in this run: {listed(list(found))}. A run that certifies it: "
        f"`steelyard run -w {case.workload}:{case.preset} --task {INFERENCE} {chosen}`."
    )


def _exporter(contender: Contender) -> str:
    """Return the framework that exported a contender's network; empty if the network was not exported."""
    return contender.facts.exporters.get(contender.mode, "").partition("@")[0]


def _is_export(exported: Contender, contender: Contender) -> bool:
    same = (_exporter(exported), exported.case.workload) == (contender.case.framework, contender.case.workload)
    return same and exported.case.sizes == contender.case.sizes


def _works(contender: Contender) -> bool:
    return contender.proof.state == "certified" and not contender.failure and bool(contender.trials)
