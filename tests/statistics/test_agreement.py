"""The order of contenders on several machines: where verdicts contradict it, and where they say nothing."""

from __future__ import annotations

from steelyard.statistics.agreement import MachineOrder, agreement, machine_order, sentence
from steelyard.statistics.decision import decide


def order(names: str, *decided: str) -> MachineOrder:
    """Return an order of contenders with names of one letter; `decided`: pairs such as `ab`, a ahead of b."""
    return MachineOrder(tuple(names), frozenset((pair[0], pair[1]) for pair in decided))


def test_the_order_that_the_fewest_machines_contradict_is_named_with_those_that_do() -> None:
    alike = {f"m{number}": order("abc", "ab", "ac", "bc") for number in range(4)}
    found = agreement({**alike, "odd": order("acb", "ab", "ac", "cb")})
    assert found
    assert found.same == ("m0", "m1", "m2", "m3")
    assert sentence(found) == (
        "The order of contenders is the same on 4 of 5 machines: a, b, c. On odd c is ahead of b."
    )


def test_pairs_that_are_not_decided_contradict_nothing_but_are_counted() -> None:
    found = agreement({"one": order("abc", "ab", "ac", "bc"), "two": order("acb", "ab")})
    assert found
    assert sentence(found) == (
        "The order of contenders is the same on 2 of 2 machines: a, b, c. "
        "Of 6 pairs there, 2 are not decided and contradict nothing."
    )


def test_only_contenders_that_every_machine_has_are_in_the_order() -> None:
    found = agreement({"one": order("xab", "xa", "ab"), "two": order("aby", "ab", "by")})
    assert found
    assert (found.order, found.against) == (("a", "b"), {})


def test_one_machine_or_one_common_contender_has_no_order() -> None:
    assert agreement({"one": order("ab", "ab")}) is None
    assert agreement({"one": order("ab", "ab"), "two": order("a")}) is None
    assert agreement({}) is None


def test_verdicts_decide_pairs_whichever_way_round_they_are() -> None:
    fast, slow = {n: 1.0 + n / 1e4 for n in range(8)}, {n: 2.0 + n / 1e4 for n in range(8)}
    ranking = decide({"1": slow, "2": fast, "3": dict(slow)})
    found = machine_order(ranking, {"1": "slow", "2": "fast", "3": "same"})
    assert found.order[0] == "fast"
    assert found.decided == {("fast", "slow"), ("fast", "same")}
