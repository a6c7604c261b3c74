"""The plot of a training on two hosts by the bandwidth of their link."""

from __future__ import annotations

import pytest
from recorded import Script, options, view_of, write_run

from steelyard.host import links
from steelyard.plan import spreading
from steelyard.report.plots import link_speed

EXACT = {"scatter": 0.0, "process_scatter": 0.0}
# The first name that a variant contains counts.
SCRIPTS = {
    "copies:2@1gbit": Script(12.0, **EXACT),
    "copies:2@100mbit": Script(40.0, **EXACT),
    "copies:2": Script(10.0, **EXACT),
    "alone": Script(9.0, passed=None, **EXACT),
}


@pytest.fixture
def comparison_of(tmp_path, monkeypatch):
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    monkeypatch.setattr(links, "obstacle", lambda: "")

    def made(*strategies):
        wanted = options(frameworks=("fake",), strategies=("single:1", *strategies), threads=(1,))
        scripts = {"single": Script(15.0, **EXACT), **SCRIPTS}
        (comparison,) = view_of(write_run(tmp_path, scripts, wanted)).comparisons
        return comparison

    return made


def test_steps_are_drawn_over_the_bandwidth_with_one_host_beside_them(comparison_of) -> None:
    comparison = comparison_of("copies:2", "copies:2@100mbit", "copies:2@1gbit", "alone:2")
    figure = link_speed.figure(comparison)
    line, local = figure.data
    assert line["x"] == [100.0, 1000.0]
    assert line["y"] == pytest.approx([0.040, 0.012])
    assert line["name"] == "Fake, copies:2"
    assert local["y"] == pytest.approx([0.010, 0.010])
    assert local["line"]["color"] == line["line"]["color"]
    assert figure.layout["xaxis"]["ticktext"] == ["100 Mbit/s", "1 Gbit/s"]


def test_one_link_is_no_line(comparison_of) -> None:
    comparison = comparison_of("copies:2", "copies:2@1gbit")
    assert link_speed.figure(comparison) is None


def test_without_one_host_there_is_no_dashed_line(comparison_of) -> None:
    comparison = comparison_of("copies:2@100mbit", "copies:2@1gbit")
    assert [each["mode"] for each in link_speed.figure(comparison).data] == ["lines+markers"]
