"""The time left for the rounds of a run, from the processes that have ended and the rounds that are still needed."""

import math
import time
from collections.abc import Callable

from steelyard.plan.run_plan import Group, RunPlan, Variant
from steelyard.statistics.decision import Ranking, rounds_needed, rounds_wanted


class TimeLeft:
    """Follows the processes of all rounds. The estimate is rough, because the number of rounds is known only at the end.

    Another thread draws the view, so the data that it reads is replaced or copied, never iterated over while it grows.
    """

    def __init__(self, plan: RunPlan, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan, self._clock = plan, clock
        self._spans_s: dict[str, list[float]] = {}  # variant's key -> seconds of each of its processes
        self._rankings: dict[str, Ranking] = {}
        self._began_s = math.inf
        self._running: dict[str, tuple[Variant, float]] = {}  # by the node of a cluster; "" without one
        self._earlier_s: dict[
            str, float
        ] = {}  # variant's key -> seconds of its process before it last waited for its turn
        self._in_round: list[Variant] = []  # those whose processes of the present round have ended

    def started(self, variant: Variant, node: str = "") -> None:
        """A process starts. The previous one on the same node of a cluster has ended; without a cluster it has ended or waits."""
        self._began_s = min(self._began_s, self._clock())
        if node:
            self.ended(node)
        self._switch(node, variant)

    def goes_on(self, variant: Variant) -> None:
        """A waiting process resumes; the previous one has paused or ended."""
        self._switch("", variant)

    def ended(self, node: str = "", case_id: str = "") -> None:
        """A process has ended: the one of a case, or the one on a node."""
        running, _ = self._running.get(node, (None, 0.0))
        variant = self._plan.by_id[case_id] if case_id else running
        if running == variant:
            self._switch(node, None)
        if variant and variant.key in self._earlier_s:
            self._spans_s.setdefault(variant.key, []).append(self._earlier_s.pop(variant.key))
            others = [each for each in self._in_round if each.group == variant.group and each != variant]
            self._in_round = [*others, variant]

    def _switch(self, node: str, variant: Variant | None) -> None:
        """Let another process run on a node, or none."""
        now, others = self._clock(), {name: each for name, each in self._running.items() if name != node}
        if node in self._running:
            earlier, since = self._running[node]
            self._earlier_s = {**self._earlier_s, earlier.key: self._earlier_s.get(earlier.key, 0.0) + now - since}
        self._running = {**others, node: (variant, now)} if variant else others

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
        """Return the seconds for these numbers of further rounds by group, less the time that running processes have spent."""
        groups = self._plan.groups
        total = sum(max(0, count(group)) * sum(map(self._span_s, self._wanted(group))) for group in groups)
        begun = sum(map(self._span_s, self._in_round))
        spent_s = self._earlier_s
        for variant, since in self._running.values():
            spent_s = {**spent_s, variant.key: spent_s.get(variant.key, 0.0) + self._clock() - since}
        for variant in self._plan.variants:
            begun += min(spent_s.get(variant.key, 0.0), self._span_s(variant))
        return max(0.0, total - begun)

    def _span_s(self, variant: Variant) -> float:
        """Return the mean time of a variant's processes; of all processes if it has none yet."""
        spans = self._spans_s.get(variant.key) or [span for each in list(self._spans_s.values()) for span in each]
        return math.fsum(spans) / len(spans)

    def _rounds_run(self, group: Group) -> int:
        return self._rankings[group.name].rounds_run if group.name in self._rankings else 0

    def _rounds_left(self, group: Group) -> int:
        """Return the number of rounds that the comparisons with the leader still need, within the limits of the protocol."""
        protocol, ranking, run = group.protocol, self._rankings.get(group.name), self._rounds_run(group)
        if not protocol.sequential:
            return protocol.rounds_max - run
        needed = rounds_needed(ranking) if ranking else 0
        return max(protocol.rounds_min - run, min(needed, protocol.rounds_max - run))

    def _wanted(self, group: Group) -> list[Variant]:
        ranking = self._rankings.get(group.name)
        if not ranking or not group.protocol.sequential:
            return list(group.variants)
        wanted = rounds_wanted(ranking)
        return [variant for variant in group.variants if variant.case.id in wanted]
