"""How much longer the rounds of a run take, from the processes that have ended and from the rounds still needed."""

import math
import time
from collections.abc import Callable

from steelyard.plan.run_plan import Group, RunPlan, Variant
from steelyard.statistics.decision import Ranking, rounds_wanted


class TimeLeft:
    """Follows the processes of all rounds. The estimate is rough: how many rounds it takes is known only at the end.

    The view is drawn by a thread of its own, so what it reads is replaced or copied, never iterated over while it grows.
    """

    def __init__(self, plan: RunPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan, self._clock = plan, clock
        self._spans_s: dict[str, list[float]] = {}  # variant's key -> seconds of each of its processes
        self._rankings: dict[str, Ranking] = {}
        self._began_s = math.inf
        self._running: dict[str, tuple[Variant, float]] = {}  # by the node of a cluster; "" without one
        self._in_round: list[Variant] = []  # those whose processes of the present round have ended

    def started(self, variant: Variant, node: str = "") -> None:
        """A process starts; an earlier one on the same node of a cluster has ended."""
        now = self._clock()
        self._began_s = min(self._began_s, now)
        if node:
            self.ended(node)
        self._running = {**self._running, node: (variant, now)}

    def ended(self, node: str = "") -> None:
        """The process has ended."""
        if node in self._running:
            variant, since = self._running[node]
            self._spans_s.setdefault(variant.key, []).append(self._clock() - since)
            others = [each for each in self._in_round if each.group == variant.group and each != variant]
            self._in_round = [*others, variant]
            self._running = {name: each for name, each in self._running.items() if name != node}

    def ranked(self, group: str, ranking: Ranking) -> None:
        """A round has ended."""
        self._rankings[group] = ranking
        self._in_round = []

    def seconds(self) -> float | None:
        """Return the seconds left; None before the first process has ended. Nodes of a cluster share the work."""
        if not self._spans_s:
            return None
        minutes = self._plan.minutes or math.inf
        limit_s = self._began_s + 60 * minutes - self._clock()
        least = self._of_rounds(lambda group: group.protocol.rounds_min - self._rounds_run(group))
        return min(self._of_rounds(self._rounds_left), max(least, limit_s)) / max(1, len(self._running))

    def _of_rounds(self, count: Callable[[Group], int]) -> float:
        """Return the seconds that this number of further rounds of each group takes; begun processes are taken off."""
        groups = self._plan.groups
        total = sum(max(0, count(group)) * sum(map(self._span_s, self._wanted(group))) for group in groups)
        begun = sum(map(self._span_s, self._in_round))
        for variant, since in self._running.values():
            begun += min(self._clock() - since, self._span_s(variant))
        return max(0.0, total - begun)

    def _span_s(self, variant: Variant) -> float:
        """Return the mean time of a variant's processes; of all processes if it has none yet."""
        spans = self._spans_s.get(variant.key) or [span for each in list(self._spans_s.values()) for span in each]
        return math.fsum(spans) / len(spans)

    def _rounds_run(self, group: Group) -> int:
        return self._rankings[group.name].rounds_run if group.name in self._rankings else 0

    def _rounds_left(self, group: Group) -> int:
        """Return the rounds that the comparisons with the leader still need, as far as the protocol allows them."""
        protocol, ranking, run = group.protocol, self._rankings.get(group.name), self._rounds_run(group)
        if not protocol.sequential:
            return protocol.rounds_max - run
        open_pairs = [pair for pair in ranking.verdicts if ranking.leader in (pair.a, pair.b)] if ranking else []
        needed = max((pair.rounds_still_needed for pair in open_pairs), default=0)
        return max(protocol.rounds_min - run, min(needed, protocol.rounds_max - run))

    def _wanted(self, group: Group) -> list[Variant]:
        ranking = self._rankings.get(group.name)
        if not ranking or not group.protocol.sequential:
            return list(group.variants)
        wanted = rounds_wanted(ranking)
        return [variant for variant in group.variants if variant.case.id in wanted]
