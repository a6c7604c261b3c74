"""What to do where a ranking is not decided: treat the candidates as equal, or what would settle it and how long that takes."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from steelyard.results.record import Protocol
from steelyard.statistics.answer import answer
from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict
from steelyard.statistics.sentences import listed, percent

EQUAL_IN_PRACTICE = 1.10
"""Candidates that differ by at most this factor are called equal in practice: other reasons then decide between them."""
MOST_FIXED_ROUNDS = 30
"""More rounds than this are never advised for a protocol without a limit: their number is a rough estimate."""

QUIETER = "measure on a quieter machine (`steelyard doctor` shows what disturbs this one)"


def advice(
    ranking: Ranking, titles: Mapping[str, str], protocol: Protocol, run: str, round_s: float | None, extends: bool
) -> str:
    """Return one to three sentences of advice; empty if all is decided or if there was only one round.

    `round_s`: seconds of a further round, None if unknown. `extends`: whether a resumed run goes on until this ranking is
    decided; the rounds of a sequential run follow one ranking only.
    """
    needed = {pair.b: pair.rounds_still_needed for pair in _open_pairs(ranking)}
    if not needed or ranking.rounds_run < 2:
        return ""
    # A run that has had all its rounds cannot go on; a new one may have more.
    resumed = extends and protocol.sequential and ranking.rounds_run < ranking.plan.most_rounds
    most = (
        ranking.plan.most_rounds if resumed else DecisionPlan.most_rounds if protocol.sequential else MOST_FIXED_ROUNDS
    )
    reachable = {key: count for key, count in needed.items() if ranking.rounds_run + count <= most}
    beyond = [titles[key] for key in needed if key not in reachable]
    found = [_equal(ranking, titles)]
    if beyond and not found[0]:
        subject = listed(beyond) if reachable else "Telling them apart"
        total = ranking.rounds_run + max(needed.values())
        limit = f"more than the {most} of a run" if protocol.sequential else "too many for one run"
        found.append(f"{subject} would take about {total} rounds in all, {limit}: {QUIETER}.")
    if reachable:
        what = f"settle {listed([titles[key] for key in reachable])}" if beyond else "settle it"
        more = max(reachable.values())
        total = ranking.rounds_run + more
        if resumed:
            command = f"`steelyard run --resume {run} --minutes 0`"
            found.append(f"About {_more(more)} would {what}{_time(more, round_s)}: {command}")
        else:
            found.append(f"A new run with `--rounds {total}` would {what}{_time(total, round_s)}.")
    return " ".join(filter(None, found))


def _more(rounds: int) -> str:
    return "1 more round" if rounds == 1 else f"{rounds} more rounds"


def seconds_per_round(lines: Iterable[Mapping[str, Any]], group: str) -> float | None:
    """Return how long the last counted round of a group took, from the lines of rounds.jsonl; None without one.

    The last round is the best guide: contenders that are decided were no longer in it.
    """
    spans = [line.get("host_noise", {}).get("seconds") for line in lines if line["group"] == group and line["kept"]]
    return spans[-1] if spans else None


def _open_pairs(ranking: Ranking) -> list[Verdict]:
    """Return the undecided comparisons with the leader, best first."""
    pairs = [ranking.between(ranking.leader, key) for key in ranking.order] if ranking.leader else []
    return [pair for pair in pairs if pair and pair.kind == "undecided"]


def _equal(ranking: Ranking, titles: Mapping[str, str]) -> str:
    found = answer(ranking)
    if found.compared != found.candidates or found.within > EQUAL_IN_PRACTICE:
        return ""
    who = listed([titles[key] for key in found.candidates])
    most = ceil((found.within - 1) * 1000) / 1000
    return f"Treat {who} as equal in practice: they differ by at most {percent(most)}."


def _time(rounds: int, round_s: float | None) -> str:
    """Return `, in about 3 minutes`; empty if unknown."""
    if round_s is None:
        return ""
    seconds = rounds * round_s
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f", in about {seconds / size:.0f} {unit}"
    return f", in about {seconds:.0f} seconds"
