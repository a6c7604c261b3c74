"""Two models, unmodified: equal ones are called equal, and a planted difference is named with its place and its cause."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.end_to_end


def test_equal_models_with_other_layouts_of_their_kernels_are_equal(port):
    answer = port.check()
    assert answer.code == 0, answer
    assert answer.json["verdict"] == "equal"
    mapped = {tuple(each["left"]): each for each in answer.json["record"]["mapped"]}
    assert mapped["up.weight",]["right"] == ["up.kernel"]
    assert mapped["up.weight",]["how"] == "transposed"
    assert mapped["norm.scale",]["right"] == ["norm.scale"]
    assert len(answer.json["record"]["compared"]) == 8


@pytest.mark.parametrize(
    ("changed", "place", "cause"),
    [
        ({"epsilon": 1e-6}, "norm", "layer norm: first has epsilon 1e-05, second has epsilon 1e-06"),
        (
            {"approximate": True},
            "down",
            "activation: first has GELU by the error function, second has GELU by its tanh approximation",
        ),
        (
            {"divisor": 12**0.5},
            "mixed",
            "attention: first has scores divided by the root of a head's width, second has scores divided by the root of the whole width",
        ),
        ({"causal": True}, "mixed", "attention: first has no mask, second has a causal mask"),
    ],
    ids=["epsilon", "gelu", "scale", "mask"],
)
def test_a_difference_is_named_with_its_place_and_its_cause(port, changed, place, cause):
    port.block("second", linear="dense_in_out", **changed)
    answer = port.check()
    assert answer.code == 1
    assert answer.json["verdict"] == "different"
    (finding,) = answer.json["findings"]
    assert finding == {"cause": cause, "places": 1, "first": place, "part": pytest.approx(1, abs=1e-5)}


def test_two_differences_are_both_found_in_order_with_their_parts(port):
    port.block("second", linear="dense_in_out", epsilon=1e-3, causal=True)
    answer = port.check()
    assert [each["first"] for each in answer.json["findings"]] == ["mixed", "norm"]
    assert [each.split(":")[0] for each in answer.causes] == ["attention", "layer norm"]
    assert sum(each["part"] for each in answer.json["findings"]) == pytest.approx(1, abs=1e-5)


def test_other_weights_are_said_and_the_check_goes_on_with_those_of_the_first_side(port):
    port.block("second", seed=1000)
    answer = port.check()
    assert answer.code == 1
    assert answer.json["sentences"][0].startswith(
        "Other weights. With the weights of first in both, 8 pairs of modules"
    )
    assert {each["found_by"] for each in answer.json["record"]["mapped"]} == {"name", "order"}


def test_a_record_is_shown_again_from_its_folder_alone(port, tmp_path, steelyard_port):
    port.block("second", epsilon=1e-6)
    folder = tmp_path / "record"
    first = port.check("--output", str(folder), json=False)
    assert "They part in 'norm' (first) = 'norm' (second)" in " ".join(first.out.split())
    again = steelyard_port("show", str(folder))
    assert (again.code, again.out) == (first.code, first.out)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "first has epsilon 1e-05, second has epsilon 1e-06" in page
    assert sorted(path.name for path in folder.iterdir()) == ["port.json", "report.html"]
