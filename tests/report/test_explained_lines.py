"""Where the time of a step goes, on terminals of every usual width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import Script, options, view_of, write_run
from recorded_profiles import write_profile

from steelyard.profiles import recorded
from steelyard.report import explained_lines

STEPS_US = (10000, 11000, 12000)
# The class with the longest word.
RULES = [{"class": "normalisation", "names": ["^product$"]}, {"class": "optimizer", "names": ["^update$"]}]
TITLES = ("MXNet", "TensorFlow", "PyTorch", "JAX", "MindSpore")


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A run of five contenders with profiles, named like frameworks."""
    scripts = {f"{name}/scripted,step_us={us}": Script(us / 1e3) for name in ("fake", "dummy") for us in STEPS_US}
    knobs = (f"step_us={','.join(map(str, STEPS_US))}",)
    folder = write_run(tmp_path_factory.mktemp("runs"), scripts, options(knobs=knobs))
    for name in scripts:
        profile = write_profile(folder, name, product_ms=0.0523, update_ms=2.0)
        recorded.write_rules(profile, {"operations": RULES})
    found = view_of(folder)
    (comparison,) = found.comparisons
    named = tuple(replace(each, title=title) for each, title in zip(comparison.contenders, TITLES, strict=False))
    return replace(found, comparisons=(replace(comparison, contenders=named),))


@pytest.mark.parametrize("width", range(76, 120, 4))
def test_no_word_and_no_number_is_cut(view, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    cases = {each.case.id for comparison in view.comparisons for each in comparison.contenders}
    explained_lines.show(view, cases)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "\u2026" not in text
    assert text.count("(1.7%)") == text.count("52.3 µs") == len(cases) == 5
    assert "unattributed" in text
