"""Differences between the tensors of a file and those that are needed, in sentences that name a few."""

from __future__ import annotations

from steelyard_worker import weight_names

NEEDED = {"first.weight": (4, 3), "first.bias": (4,), "head.weight": (2, 4), "head.bias": (2,)}


def differences(held: dict[str, tuple[int, ...]], **more: object) -> list[str]:
    return weight_names.differences(NEEDED, held, "the network", **more)  # type: ignore[arg-type]


def test_equal_names_and_shapes_need_no_sentence_in_any_order() -> None:
    assert differences(dict(reversed(NEEDED.items()))) == []


def test_a_misspelt_name_is_named_with_the_nearest() -> None:
    held = {**NEEDED, "head.bais": (2,)}
    del held["head.bias"]
    assert differences(held) == [
        "It lacks 'head.bias' (nearest: 'head.bais').",
        "It has 'head.bais', which the network does not have; rename it.",
    ]


def test_what_is_too_much_alone_is_left_out() -> None:
    assert differences({**NEEDED, "a": (1,), "b": (1,)}) == [
        "It has 'a' and 'b', which the network does not have; leave them out."
    ]


def test_three_are_named_and_the_others_counted() -> None:
    assert differences({"first.weight": (4, 3)}) == ["It lacks 'first.bias', 'head.weight' and 'head.bias'."]
    assert differences({}) == ["It lacks 'first.weight', 'first.bias', 'head.weight' and 1 more."]
    shapes = dict.fromkeys(NEEDED, (9, 9))
    (sentence,) = differences(shapes)
    assert sentence.startswith("'first.weight' has the shape (9, 9) instead of (4, 3), ")
    assert sentence.endswith(" and 1 more.")


def test_a_prefix_of_all_names_is_named_once() -> None:
    assert differences({f"model.{name}": shape for name, shape in NEEDED.items()}) == [
        "All names in it begin with 'model.'; write them without that."
    ]


def test_the_likely_reason_of_a_shape_stands_beside_it() -> None:
    held = {**NEEDED, "head.weight": (4, 2)}
    assert differences(held, why=lambda name: f"{name} lies otherwise") == [
        "'head.weight' has the shape (4, 2) instead of (2, 4) (head.weight lies otherwise)."
    ]
