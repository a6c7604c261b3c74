"""map.toml: every check writes it, what the user gives in it stands, and a mistake in it is named with its line."""

from __future__ import annotations

import pytest
import tomllib

pytestmark = pytest.mark.end_to_end
GIVEN = '[[pair]]\nleft = ["query.weight"]\nright = ["key.kernel"]\nfound_by = "given"\naxes = [1, 0]\n'


def test_a_check_writes_all_pairs_and_how_they_belong_together(port):
    port.check()
    pairs = tomllib.loads((port.folder / "map.toml").read_text(encoding="utf-8"))["pair"]
    assert {"left": ["up.weight"], "right": ["up.kernel"], "found_by": "content", "axes": [1, 0]} in pairs
    assert {"left": ["norm.scale"], "right": ["norm.scale"], "found_by": "order"} in pairs
    assert len(pairs) == 15


def test_a_pair_that_the_user_gives_stands_and_stays(port):
    port.write("map.toml", GIVEN)
    answer = port.check()
    assert answer.code == 1  # the values differ, so the check went on with those of the first side
    (given,) = [each for each in answer.json["record"]["mapped"] if each["found_by"] == "given"]
    assert (given["left"], given["right"], given["equal"]) == (["query.weight"], ["key.kernel"], False)
    assert '["key.kernel"]\nfound_by = "given"' in (port.folder / "map.toml").read_text(encoding="utf-8")


def test_pairs_that_a_check_wrote_are_found_anew(port):
    port.write("map.toml", GIVEN.replace("given", "name"))
    assert port.check().code == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "query.weight",
            "qeury.weight",
            "line 2: 'qeury.weight' is no tensor of the left side. Did you mean 'query.weight'",
        ),
        ("key.kernel", "up.kernel", "line 3: this gives the shape [12, 12], and 'up.kernel' has [12, 24]"),
        ("axes = [1, 0]", "axes = [2, 0]", "line 5: this does not fit the shape [12, 12]"),
        ("axes", "axis", "unknown key 'axis'"),
    ],
)
def test_a_mistake_is_named_with_its_line(port, old, new, said):
    port.write("map.toml", GIVEN.replace(old, new))
    answer = port.check()
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
