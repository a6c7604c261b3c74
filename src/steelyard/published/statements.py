"""Turn entries of documents into statements about two sides, which can be compared with measured ratios."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest
from steelyard.published import settings
from steelyard.published.study_tables import DEVICES, STRATEGY, WORKERS, Side, StudyTable, read_side
from steelyard.statistics import scores
from steelyard.statistics.claims import OVERHEAD, WEAK_SCALING, Claim, claim, level
from steelyard.statistics.conditions import Conditions  # noqa: TC001 - records are built from annotations
from steelyard_worker.strategy import SINGLE
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.published.documents import Document, Entry, Value

# Units of times, of which less is better, and of rates, of which more is better.
TIMES, RATES = ("s", "min", "h", "s/step"), ("images/s", "samples/s", "steps/s")
# Names that documents use for every framework that they compare.
ANY_FRAMEWORK = ("both", "not given")
CELL = "cell"
ONE_DEVICE = {STRATEGY: SINGLE, DEVICES: "1"}
# The words for a bound, by its relation.
BOUNDS = {"<": "below", "<=": "up to", ">": "above"}
OTHER_FORMULA = "another formula (ranks that exchange nothing instead of one device alone)"


@dataclass(frozen=True)
class Statement:
    """A published statement about the ratio of two sides, in one cell (`workload:preset`; empty: in every cell).

    Without a second side, it is about a value of the first.

    `batch` and `optimizer` are those of the document, 0 and "" where it gives none. `remark` says how the number was read
    if it is not the printed one. `statistic`: of which of several measurements it is, such as `claims.MEAN`; empty: of each.
    `claim`: the name of the document's claim, which several statements may share. `conditions`: under which
    settings the document measured, by network; empty in older records. `differs`: what is always measured differently.
    `unlike`: variants that stand for a side and are not the document's; their words say how they differ.
    """

    network: str
    cell: str
    batch: int
    optimizer: str
    first: Side
    second: Side | None
    said: Claim
    printed: str
    remark: str = ""
    statistic: str = ""
    claim: str = ""
    conditions: tuple[Conditions, ...] = ()
    differs: tuple[str, ...] = ()
    unlike: tuple[Side, ...] = ()


def statements(study_table: StudyTable, document: Document, entry: Entry) -> tuple[Statement, ...]:
    """Return the statements of an entry. UserError: it names something that is neither a framework nor a side."""
    values = selected(study_table, entry)
    if study_table.levels:
        made = _levels(study_table, document, values)
    else:
        made = (
            _compared(study_table, document, values) if study_table.compare else _stated(study_table, document, values)
        )
    return tuple(replace(_with_settings(document, entry, *each), unlike=study_table.unlike) for each in made)


def _with_settings(document: Document, entry: Entry, found: Statement, of: tuple[Value, ...]) -> Statement:
    """Return a statement with the claim that it belongs to, and the settings of its cell, or of every cell that it may mean."""
    places = "/".join(str(entry.complete_values.index(value)) for value in of)
    known = settings.conditions(document, entry, of)
    kept = tuple(each for each in known if not found.cell or not each.cells or found.cell in each.cells)
    return replace(found, claim=f"{document.short}:{entry.id}/{places}", conditions=kept)


def selected(study_table: StudyTable, entry: Entry) -> list[Value]:
    """Return the values that have every coordinate of `where`; one that holds for several cells if any of them is named."""
    return [
        value
        for value in entry.complete_values
        if all(_has(value, key, _listed(wanted)) for key, wanted in study_table.where.items())
    ]


def _has(value: Value, key: str, allowed: list[Any]) -> bool:
    if key == CELL and value.cells:
        return bool(set(value.cells) & set(allowed))
    return getattr(value, {"pass": "graph_pass"}.get(key, key)) in allowed


def _cells(study_table: StudyTable, value: Value) -> list[str]:
    """Return the cells of a value that a table is held against: those that it names, or all."""
    wanted = _listed(study_table.where.get(CELL, list(value.all_cells)))
    return [cell for cell in value.all_cells if cell in wanted]


def _listed(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def is_meant(study_table: StudyTable, value: Value) -> bool:
    """Return whether a value fits the measured quantity: scores fit scores, everything else fits times and the like."""
    return (value.quantity in scores.OF_DOCUMENTS) == (study_table.quantity in scores.QUANTITIES)


def claim_of(value: Value) -> Claim | None:
    """Return the claim of a value about a ratio. A doubtful value is replaced by what follows from the document's own numbers.

    A number that belongs to no single cell, such as a mean over networks, cannot be compared with one.
    """
    number = value.recomputed if value.doubtful else value.value
    said = claim(value.quantity, value.relation, _is_ordered(value), number, value.low, value.high)
    return said if said and (value.all_cells or said.low is None) else None


def level_of(value: Value) -> Claim | None:
    """Return the claim of a value about the same value of a cell; None if it names no cell, such as a mean over networks."""
    return level(value.relation, value.value, value.low, value.high) if value.all_cells else None


def _levels(
    study_table: StudyTable, document: Document, values: list[Value]
) -> Iterator[tuple[Statement, tuple[Value, ...]]]:
    """Yield a statement for every value in every cell. A value without a framework belongs to all that the document compares."""
    for value in values:
        said = level_of(value)
        if not said:
            continue
        for framework in document.compares if value.framework in ("", *ANY_FRAMEWORK) else (value.framework,):
            side = _all(study_table, document, [framework, value.mode, value.strategy])
            for cell in _cells(study_table, value):
                found = Statement(value.network, cell, value.batch, value.optimizer, side, None, said, printed(value))
                yield found, (value,)


def _is_ordered(value: Value) -> bool:
    """Return whether the first side is claimed to be better, which a difference alone does not claim."""
    return bool(value.faster) or value.quantity != "difference"


def _stated(
    study_table: StudyTable, document: Document, values: list[Value]
) -> Iterator[tuple[Statement, tuple[Value, ...]]]:
    """Yield the statements of values about two sides."""
    for value in values:
        said = claim_of(value) if is_meant(study_table, value) else None
        if not said:
            continue
        differs = (OTHER_FORMULA,) if _is_overhead(value) and study_table.quantity != WEAK_SCALING else ()
        for framework in document.compares if value.framework in ANY_FRAMEWORK else (value.framework,):
            first, second = _sides(study_table, document, replace(value, framework=framework))
            if said.is_reversed:
                first, second = second, first
            remark = "the framework is not given" if value.framework == "not given" else ""
            remark = f"recomputed, printed {value.printed}" if value.doubtful else remark
            for cell in _cells(study_table, value) or ("",):
                found = Statement(
                    value.network,
                    cell,
                    value.batch,
                    value.optimizer,
                    first,
                    second,
                    said.turned() if said.is_reversed else said,
                    printed(value),
                    remark,
                    value.statistic,
                    differs=differs,
                )
                yield found, (value,)


def _is_overhead(value: Value) -> bool:
    return value.quantity == OVERHEAD and not value.against


def printed(value: Value) -> str:
    """Return a value as the document prints it, or as we computed it; a column of percentages does not repeat the sign.

    A bound that the document's sentence gives elsewhere stands in brackets: "[above] 92%".
    """
    if value.printed:
        if value.relation in BOUNDS and value.printed[0].isdigit():
            return f"[{BOUNDS[value.relation]}] {value.printed}"
        return f"{value.printed} %" if value.unit == "%" and value.printed[-1].isdigit() else value.printed
    if value.low is not None and value.high is not None:
        return f"{value.low:,g} to {value.high:,g} {value.unit}".strip()
    return f"{value.value:g} {value.unit}".strip() if value.value is not None else ""


def _sides(study_table: StudyTable, document: Document, value: Value) -> tuple[Side, Side]:
    """Return both sides of a value. If the second names no framework or mode, it has that of the first.

    A value that names no side belongs to the first two frameworks that the document compares.
    """
    if not (value.framework or value.faster or value.against):
        value = replace(value, framework=document.compares[0], against=document.compares[1])
    against, modes = value.against.split(), [value.mode, value.strategy, value.graph_pass]
    first = _on_devices(_all(study_table, document, [value.framework, value.faster, *modes]), value)
    if _is_overhead(value):
        if study_table.quantity == WEAK_SCALING:  # the speed of one device, which has the same share of work
            return replace(first, words=f"{first.framework} 1 device", settings={**first.settings, **ONE_DEVICE}), first
        # Ranks that exchange nothing: the same devices at the same time.
        return first.joined(Side("without exchange", settings={STRATEGY: ALONE})), first
    second = _all(study_table, document, [*(modes if set(against) <= set(document.compares) else ()), *against])
    second = _on_devices(second, value)
    if value.workers is not None:
        first = first.joined(Side(f"{value.workers} workers", settings={WORKERS: str(value.workers)}))
        other = value.against_workers if value.against_workers is not None else value.workers
        second = second.joined(Side(f"{other} workers", settings={WORKERS: str(other)}))
    if not second.framework:
        second = replace(second, framework=first.framework, words=f"{first.framework} {second.words}".strip())
    return first, second


def _on_devices(side: Side, value: Value) -> Side:
    """Return a side with the number of devices of a published value; a single process has one in any case."""
    if not value.devices or side.settings.get(STRATEGY) == SINGLE:
        return side
    words = f"{value.devices} device{'s' if value.devices > 1 else ''}"
    return side.joined(Side(words, settings={DEVICES: str(value.devices)}))


def _all(study_table: StudyTable, document: Document, words: list[str]) -> Side:
    found = Side("")
    for word in dict.fromkeys(filter(None, words)):
        found = found.joined(_side(study_table, document, word))
    return found


def _side(study_table: StudyTable, document: Document, word: str) -> Side:
    """Return the variant that a word of the document refers to. UserError: no side defines it."""
    if word in study_table.sides:
        return read_side(word, study_table.sides[word])
    if word in document.compares:
        return Side(word, framework=word)
    known = nearest(word, [*study_table.sides, *document.compares])
    raise UserError(f"{study_table.entry} speaks of '{word}', which 'sides' does not map to a variant.{known}")


def _compared(
    study_table: StudyTable, document: Document, values: list[Value]
) -> Iterator[tuple[Statement, tuple[Value, ...]]]:
    """Yield a statement for every two values that differ only in the two words."""
    ones, others = ([_without_word(value, word) for value in values] for word in study_table.compare)
    for (one, rest), (other, other_rest) in itertools.product(
        zip(values, ones, strict=True), zip(values, others, strict=True)
    ):
        ratio = _ratio(one, other)
        if ratio is None or rest is None or rest != other_rest:
            continue
        first, second = (
            _on_devices(
                _all(
                    study_table,
                    document,
                    [value.framework, value.mode, value.strategy if value.strategy in study_table.sides else ""],
                ),
                value,
            )
            for value in (one, other)
        )
        texts = [printed(one), printed(other)]
        if ratio < 1:
            first, second, ratio, texts = second, first, 1 / ratio, texts[::-1]
        for cell in _cells(study_table, one) or ("",):
            said = Claim(ratio, ratio, ordered=True)
            found = Statement(one.network, cell, one.batch, one.optimizer, first, second, said, " against ".join(texts))
            yield found, (one, other)


def _ratio(one: Value, other: Value) -> float | None:
    """Return the ratio of two published speeds; None if the values are no times or rates."""
    if one.unit != other.unit or one.value is None or other.value is None or not one.value or not other.value:
        return None
    if one.unit in TIMES:
        return other.value / one.value
    return one.value / other.value if one.unit in RATES else None


def _without_word(value: Value, text: str) -> dict[str, Any] | None:
    """Return the other coordinates of a value, without one or several words; None if it does not have these words."""
    names = ("framework", "mode", "strategy")
    places = [name for name in names if getattr(value, name) == text]
    if not places and all(any(getattr(value, name) == word for name in names) for word in text.split()):
        places = [name for name in names if getattr(value, name) in text.split()]
    numbers = ("value", "printed", "recomputed", "lines", "more")
    return {key: each for key, each in asdict(value).items() if key not in (*numbers, *places)} if places else None
