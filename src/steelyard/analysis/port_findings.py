"""What a port check found: one verdict, and the differences grouped by their cause, the largest first."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.results.port_record import as_dict

if TYPE_CHECKING:
    from steelyard.results.port_record import Difference, Mapped, PortRecord, Stage

EQUAL, DIFFERENT, UNCLEAR = "equal", "different", "unclear"
EXIT_CODES = {EQUAL: 0, DIFFERENT: 1, UNCLEAR: 2}
TENSOR_WORDS = {
    "gradient": "",
    "statistic": " of what one pass changes",
    "loader": "",
    "update": " of what the step changes, with the same gradients",
}
FOUND_BY = {
    "content": "by content",
    "order": "by content and order",
    "name": "by name and shape",
    "given": "as map.toml says",
}


@dataclass(frozen=True)
class Finding:
    """Differences with one cause. `part`: of the distance at the outputs, from 0 to 1; None if the outputs are not apart."""

    cause: str
    differences: tuple[Difference, ...]
    part: float | None

    @property
    def first(self) -> Difference:
        """The difference that comes first in the model."""
        return self.differences[0]


@dataclass(frozen=True)
class Verdict:
    """`state`: equal, different or unclear. `sentences`: the first says whether the models are the same.

    `causes`: those of the sentences that say why they are not.
    """

    state: str
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    causes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 equal, 1 different, 2 unclear."""
        return EXIT_CODES[self.state]


def verdict(record: PortRecord) -> Verdict:
    """Return what the record says of the two models."""
    findings, learning = _findings(record), _in_training(record)
    unmapped, changed = _unmapped(record), _changed(record)
    if findings:
        first = record.differences[0]
        sentences = [
            f"Not the same. They part {_place(record, first)}: {_distances(first)}.",
            *_causes(record, findings),
        ]
        rest = (*unmapped, *changed, mapped_sentence(record), *_unseen(record))
        return Verdict(DIFFERENT, (*sentences, *learning, *rest), findings, (*sentences[1:], *learning))
    doubt = _doubt(record)
    if doubt and not learning:
        return Verdict(UNCLEAR, (f"Could not tell. {doubt}", *unmapped, *changed, mapped_sentence(record)), ())
    same = f"{len(record.compared)} pairs of modules and all outputs agree to {_share(record.tolerance)} in {record.precision}"
    rest = (*unmapped, mapped_sentence(record), *_alike_in_training(record), *_unseen(record))
    if learning:
        start = f"Not the same in training. {doubt or f'In evaluation mode, {same}.'}"
        return Verdict(DIFFERENT, (start, *learning, *changed, *rest), (), learning)
    if changed:
        start = f"Other weights. With the weights of {record.left.name} in both, {same}, in evaluation mode."
        return Verdict(DIFFERENT, (start, *changed, *rest), ())
    return Verdict(EQUAL, (f"Equal. {same}, in evaluation mode.", *rest), ())


def _doubt(record: PortRecord) -> str:
    """Return why two models in which no difference was found cannot be called the same; empty if they can."""
    if not record.mapped and not record.compared:
        return "No tensor of one model was found in the other, so nothing could be compared."
    if record.unpaired_outputs:
        names = ", ".join(f"'{name}'" for name in record.unpaired_outputs)
        return f"Only one of the two models returns {names}. Let outputs(result) in both files return the same outputs."
    if record.without_numbers:
        names = ", ".join(f"'{name}'" for name in record.without_numbers)
        return (
            f"There is no number in {names}, only infinities or NaN. Give inputs on which the models compute numbers."
        )
    if (failed := next((each for each in record.training if each.failed), None)) is not None:
        return (
            f"The models agree in evaluation mode, but not everything could be compared: {failed.name}: {failed.unseen}"
        )
    return ""


def _in_training(record: PortRecord) -> tuple[str, ...]:
    """Say for every stage of training in which both sides differ how far, and why."""
    sentences, known = list[str](), Counter[str]()
    for stage in record.training:
        if not stage.differences:
            continue
        causes = Counter(each.cause for each in stage.differences if each.cause)
        if causes and causes == known:
            continue  # five updates differ for the reasons for which the first one does
        known = causes
        unexplained = sum(not each.cause for each in stage.differences)
        said = [f"Cause: {cause}{_places(stage, count)}." for cause, count in causes.most_common()]
        if unexplained:
            tried = ", ".join(dict.fromkeys(name for each in stage.differences for name in each.tried))
            said.append(f"Cause unknown{_places(stage, unexplained)}. Tried: {tried or 'nothing that fits'}.")
        sentences.append(" ".join([f"{_parted(stage)}.", *said]))
    return tuple(sentences)


def _parted(stage: Stage) -> str:
    first = stage.differences[0]
    name = stage.name[0].upper() + stage.name[1:]
    if first.where == "loss":
        return f"{name}: given the same outputs, {stage.facts}"
    if first.where in TENSOR_WORDS:
        what = "arrays" if first.where == "loader" else "tensors"
        return (
            f"{name}: {len(stage.differences)} of {stage.compared} {what} differ, the first '{first.left}' = '{first.right}' by "
            f"{_share(first.outputs)}{TENSOR_WORDS[first.where]}"
        )
    where = "in" if first.where == "in" else "before" if first.where == "before" else "at"
    return f"{name}: they part {where} '{first.left}' = '{first.right}' by {_share(max(first.inputs, first.outputs))}"


def _places(stage: Stage, count: int) -> str:
    return f" ({count} of these)" if len(stage.differences) > 1 else ""


def _alike_in_training(record: PortRecord) -> list[str]:
    """Say which stages of training agree."""
    alike = [each.name for each in record.training if each.compared and not each.differences and not each.unseen]
    return [f"In training these agree: {', '.join(alike)}."] if alike else []


def _unseen(record: PortRecord) -> list[str]:
    """Say what was not compared, and why."""
    reasons: dict[str, list[str]] = {}
    for stage in record.training:
        if stage.unseen:
            reasons.setdefault(stage.unseen.rstrip("."), []).append(stage.name)
    said = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return [f"Not looked at: {'; '.join(said)}."] if said else []


def mapped_sentence(record: PortRecord) -> str:
    """Say how many tensors were mapped, and by what."""
    ways = Counter(pair.found_by for pair in record.mapped)
    said = ", ".join(f"{count} {FOUND_BY.get(way, way)}" for way, count in ways.most_common())
    return f"{len(record.mapped)} pairs of tensors were mapped: {said}." if said else "No tensor was mapped."


def json_of(record: PortRecord) -> dict[str, Any]:
    """Return the verdict and the record for scripts; distances without a number are null."""
    found = verdict(record)
    causes = [
        {"cause": each.cause, "places": len(each.differences), "first": each.first.left, "part": each.part}
        for each in found.findings
    ]
    whole = {"verdict": found.state, "sentences": list(found.sentences), "findings": causes, "record": as_dict(record)}
    finite: dict[str, Any] = _finite(whole)
    return finite


def _findings(record: PortRecord) -> tuple[Finding, ...]:
    """Group the differences by cause; those without one stay alone."""
    groups: dict[Any, list[Difference]] = {}
    for number, each in enumerate(record.differences):
        groups.setdefault(each.cause or number, []).append(each)
    found = []
    for differences in groups.values():
        parts = [each.part for each in differences if each.part is not None]
        found.append(Finding(differences[0].cause, tuple(differences), sum(parts) if parts else None))
    return tuple(found)


def _causes(record: PortRecord, findings: tuple[Finding, ...]) -> tuple[str, ...]:
    sentences = []
    for each in findings:
        count = len(each.differences)
        where = "" if count == 1 else f", at {count} places, the first {_place(record, each.first)}"
        part = (
            f" {each.part:.0%} of the distance at the outputs goes with it." if each.part and len(findings) > 1 else ""
        )
        if each.cause:
            sentences.append(f"Cause: {each.cause}{where}.{part}")
        else:
            tried = ", ".join(each.first.tried) or "nothing that fits this place"
            sentences.append(f"Cause unknown {_place(record, each.first)}. Tried: {tried}.{part}")
    return tuple(sentences)


def _place(record: PortRecord, difference: Difference) -> str:
    if difference.where == "output":
        return f"after the last module that both have, at the output '{difference.left}'"
    where = "in" if difference.where == "in" else "before"
    return f"{where} '{difference.left}' ({record.left.name}) = '{difference.right}' ({record.right.name})"


def _distances(difference: Difference) -> str:
    if difference.where == "in":
        inputs = f"agree to {_share(difference.inputs)}" if difference.inputs else "are equal"
        return f"its inputs {inputs}, its outputs differ by {_share(difference.outputs)}"
    if difference.where == "before":
        return f"all compared modules before it agree, and what it receives differs by {_share(difference.inputs)}"
    return f"all compared modules agree, and the outputs differ by {_share(difference.outputs)}"


def _unmapped(record: PortRecord) -> list[str]:
    found = []
    for side, names in ((record.left, record.only_left), (record.right, record.only_right)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            shown = ", ".join(f"'{name}'" for name in names[:3])
            found.append(f"Without a partner in the other model: {shown}{more} ({side.name}).")
    return found


def _changed(record: PortRecord) -> list[str]:
    """Say which mapped tensors have other values."""
    names = [pair for pair in record.mapped if not pair.equal]
    if not names:
        return []
    worst = max(names, key=lambda pair: pair.differ_by)
    sentence = (
        f"{len(names)} of {len(record.mapped)} pairs of tensors have other values, such as '{worst.left[0]}' and "
        f"'{worst.right[0]}', by {_share(worst.differ_by)}; for the check {record.left.name}'s were given to both."
    )
    return [sentence]


def stage_words(stage: Stage) -> tuple[str, str, str]:
    """Return a stage of training, how much of it was compared, and what came out, as cells of a table."""
    if stage.unseen:
        return stage.name, "", f"not looked at: {stage.unseen.rstrip('.')}"
    count = len(stage.differences)
    state = f"{count} {'differs' if count == 1 else 'differ'}" if count else "the same"
    return stage.name, str(stage.compared), ", ".join(filter(None, (state, stage.facts)))


def pair_words(pair: Mapped) -> tuple[str, str, str]:
    """Return the tensors of both sides and how they belong together, as cells of a table."""
    how = ", ".join(
        filter(None, (FOUND_BY.get(pair.found_by, pair.found_by), pair.how, "" if pair.equal else "other values"))
    )
    return " + ".join(pair.left), " + ".join(pair.right), how


def _share(value: float) -> str:
    return "another shape" if math.isinf(value) else "0" if value == 0 else f"{value:.1g}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
