"""What to do where a ranking is not decided: treat the candidates as equal, or what would settle it and how long that takes."""

from collections.abc import Collection, Iterable, Mapping
from math import ceil, inf
from typing import Any

from steelyard.analysis.commands import Further
from steelyard.plan.protocols import Protocol
from steelyard.statistics.answer import answer, largest_factor
from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict
from steelyard.statistics.sentences import MOST_NAMED, NOT_ENOUGH, at_most, listed, percent, some_others

SMALL = 1.10
"""Of candidates that differ by at most this factor, the advice says so: it may be too little to matter to somebody."""
MOST_FIXED_ROUNDS = 30
"""More rounds than this are never advised for a protocol without a limit: their number is a rough estimate."""


def advice(ranking: Ranking, titles: Mapping[str, str], protocol: Protocol, further: Further, extends: bool) -> str:
    """Return one to three sentences of advice; empty if all is decided or if there was only one round.

    Only what can be done is advised: more rounds than a run may have are not. `extends`: whether a resumed run goes on until
    this ranking is decided; the rounds of a sequential run follow one ranking only.
    """
    needed = {pair.b: pair.rounds_still_needed for pair in _open_pairs(ranking)}
    if not needed or ranking.rounds_run < 2:
        return ""
    # A run that has had all its rounds cannot go on; a new one may have more.
    resumed = extends and protocol.sequential and ranking.rounds_run < ranking.plan.most_rounds
    if resumed:
        most = ranking.plan.most_rounds
    elif further.again:
        most = DecisionPlan.most_rounds if protocol.sequential else MOST_FIXED_ROUNDS
    else:
        most = ranking.rounds_run
    reachable = {key: count for key, count in needed.items() if ranking.rounds_run + count <= most}
    beyond = [key for key in needed if key not in reachable]
    found = [_equal(ranking, titles)]
    if beyond and not found[0]:
        found.append(_inseparable(ranking, titles, beyond, most))
    if reachable:
        what = f"settle {some_others([titles[key] for key in reachable])}" if beyond else "settle it"
        more = max(reachable.values())
        total = ranking.rounds_run + more
        if resumed:
            rounds, command, seconds = f"About {_more(more)}", further.resume, _times(more, further.round_s)
        else:
            rounds, command = f"A new run of {total} rounds", further.with_rounds(total)
            seconds = _times(total, further.full_round_s)
        found.append(f"{rounds} would {what}{_time(seconds)}: `{command}`")
    return " ".join(filter(None, found))


def _more(rounds: int) -> str:
    return "1 more round" if rounds == 1 else f"{rounds} more rounds"


def round_times(lines: Iterable[Mapping[str, Any]], groups: Iterable[str]) -> dict[str, list[float]]:
    """Return the seconds of the counted rounds of each group in order, from the lines of rounds.jsonl.

    The last one is the best guide to a further round: contenders that are decided were no longer in it.
    """
    spans: dict[str, list[float]] = {group: [] for group in groups}
    for line in lines:
        if line["group"] in spans and line["kept"] and "seconds" in line.get("host_noise", {}):
            spans[line["group"]].append(line["host_noise"]["seconds"])
    return spans


def _open_pairs(ranking: Ranking) -> list[Verdict]:
    """Return the undecided comparisons with the leader, best first."""
    pairs = [ranking.between(ranking.leader, key) for key in ranking.order] if ranking.leader else []
    return [pair for pair in pairs if pair and pair.kind == "undecided"]


def _equal(ranking: Ranking, titles: Mapping[str, str]) -> str:
    found = answer(ranking)
    if found.compared != found.candidates or found.within > SMALL:
        return ""
    names = [titles[key] for key in found.candidates]
    who = listed(names) if len(names) <= MOST_NAMED else f"these {len(names)} contenders"
    most = ceil((found.within - 1) * 1000) / 1000
    return f"{who[:1].upper()}{who[1:]} differ by at most {percent(most)}: if that is little to you, choose by something else."


def _inseparable(ranking: Ranking, titles: Mapping[str, str], beyond: Collection[str], most: int) -> str:
    """Say how much candidates may differ that no run here can tell apart; contenders that are ruled out are not mentioned."""
    found = answer(ranking)
    alike = [key for key in found.candidates if key in beyond or key == ranking.leader]
    if len(alike) < 2:
        return ""
    many = len(alike) > MOST_NAMED
    who = f"{len(alike)} contenders" if many else listed([titles[key] for key in alike])
    text = f"{who} cannot be told apart here within {most} rounds"
    close = [key for key in alike if key in found.compared]
    wide = [titles[key] for key in alike if key not in found.compared]
    if len(close) < 2:
        unknown = "" if found.within == inf else f", and there were {NOT_ENOUGH} to say how much they differ"
        return f"{text}{unknown}."  # the headline has already said so of all candidates
    within = at_most(max(largest_factor(pair) for pair in ranking.verdicts if pair.a in close and pair.b in close))
    of = f"of {listed([titles[key] for key in close])}, " if wide and not many else ""
    text += f": {of}one may be up to {within} faster than {'the other' if len(close) == 2 else 'another'}"
    unclear = f"{len(wide)} of them" if many else listed(wide)
    return f"{text} ({NOT_ENOUGH} for {unclear})." if wide else f"{text}."


def _times(rounds: int, seconds: float | None) -> float | None:
    return None if seconds is None else rounds * seconds


def _time(seconds: float | None) -> str:
    """Return `, in about 3 minutes`; empty if unknown."""
    if seconds is None:
        return ""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f", in about {seconds / size:.0f} {unit}"
    return f", in about {seconds:.0f} seconds"
