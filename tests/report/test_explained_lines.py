"""Where the time of a step goes, on terminals of every usual width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import Script, options, view_of, write_run
from recorded_profiles import write_profile

from steelyard.catalog import frameworks
from steelyard.files import settings_files
from steelyard.profiles import classes, recorded
from steelyard.report import explained, explained_lines

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


@pytest.mark.parametrize(("product_ms", "said"), [(0.05, False), (1.0, True)])
def test_what_a_profiler_leaves_out_is_said_of_the_class_that_holds_its_time(tmp_path, product_ms, said):
    folder = write_run(tmp_path, {"fake": Script()})
    sentence = "Its profiler leaves out cheap operations."
    profile = write_profile(folder, "fake", product_ms=product_ms, update_ms=2.0)
    recorded.write_rules(profile, {"operations": RULES, "unrecorded": {"normalisation": sentence}})
    (comparison,) = view_of(folder).comparisons
    sentences = explained.section(comparison).sentences
    assert (f"Normalisation of Fake: {sentence}" in sentences) is said


def test_what_is_said_of_a_class_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="there is no class 'cheap'"):
        classes.unrecorded({"cheap": "It is left out."})
    with pytest.raises(ValueError, match="unrecorded"):
        classes.unrecorded({"dispatch": 1})


def test_every_framework_says_it_of_classes_that_exist():
    said = {
        name: classes.unrecorded(settings_files.read(known.folder / frameworks.OPERATIONS).get("unrecorded", {}))
        for name, known in frameworks.contenders().items()
        if (known.folder / frameworks.OPERATIONS).is_file()
    }
    assert said["tensorflow"].keys() == {"dispatch"}
