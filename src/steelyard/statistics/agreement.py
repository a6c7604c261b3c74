"""Compare the order of contenders on several machines. Numbers of different machines are never divided by each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from steelyard.statistics.decision import Ranking
from steelyard.statistics.sentences import listed

LEAST_MACHINES = 2


@dataclass(frozen=True)
class MachineOrder:
    """The order on one machine, best first as observed, and the pairs (better, worse) that its verdicts decided."""

    order: tuple[str, ...]
    decided: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Agreement:
    """The order that the fewest machines contradict. `against`: machine -> its decided pairs (better, worse) that contradict it.

    `same`: the machines without such pairs. `open_pairs`: how many of the `pairs` these machines have not decided.
    """

    order: tuple[str, ...]
    same: tuple[str, ...]
    against: Mapping[str, tuple[tuple[str, str], ...]]
    open_pairs: int
    pairs: int


def machine_order(ranking: Ranking, names: Mapping[str, str]) -> MachineOrder:
    """Return the order of a ranking; `names`: contender in the ranking -> its name on every machine."""
    decided = set[tuple[str, str]]()
    for verdict in ranking.verdicts:
        a, b = names[verdict.a], names[verdict.b]
        decided |= {(a, b)} if verdict.kind == "better" else {(b, a)} if verdict.kind == "worse" else set()
    return MachineOrder(tuple(names[key] for key in ranking.order), frozenset(decided))


def agreement(machines: Mapping[str, MachineOrder]) -> Agreement | None:
    """Compare the orders of the contenders that all machines have; None for fewer than two machines or contenders."""
    common = set.intersection(*({*each.order} for each in machines.values())) if machines else set()
    if len(machines) < LEAST_MACHINES or len(common) < 2:
        return None
    orders = Counter(tuple(name for name in each.order if name in common) for each in machines.values())

    def place(order: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
        return sum(bool(_against(order, each)) for each in machines.values()), -orders[order], order

    best = min(orders, key=place)
    against = {name: found for name, each in machines.items() if (found := _against(best, each))}
    same = tuple(name for name in machines if name not in against)
    pairs = list(combinations(best, 2))
    decided = sum(pair in machines[name].decided for name in same for pair in pairs)
    return Agreement(best, same, against, len(same) * len(pairs) - decided, len(same) * len(pairs))


def _against(order: Sequence[str], found: MachineOrder) -> tuple[tuple[str, str], ...]:
    place = {name: number for number, name in enumerate(order)}
    known = [(a, b) for a, b in found.decided if a in place and b in place]
    return tuple(sorted((a, b) for a, b in known if place[a] > place[b]))


def sentence(found: Agreement) -> str:
    """Return a sentence on how many machines the order is the same, and on the contradictions of the others."""
    count = len(found.same) + len(found.against)
    text = f"The order of contenders is the same on {len(found.same)} of {count} machines: {', '.join(found.order)}."
    if found.open_pairs:
        text += f" Of {found.pairs} pairs there, {found.open_pairs} are not decided and contradict nothing."
    for name, pairs in found.against.items():
        text += f" On {name} {listed([f'{a} is ahead of {b}' for a, b in pairs])}."
    return text
