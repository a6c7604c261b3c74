"""What a setting brings: figures, sentences, page, terminal and JSON, from scripted runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis import formatting, largest_batch, setting_effects
from steelyard.analysis.largest_batch import Found
from steelyard.analysis.setting_effects import Effect
from steelyard.report import as_json, page
from steelyard.report.sections import setting_effects as section
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.statistics.intervals import Ratio

EXACT = {"scatter": 0.0, "process_scatter": 0.0}
# The usual value of `noise` is 0. Memory of the contenders, in this order: 300, 310, 320 and 330 MiB.
SCRIPTS = {
    "fake/scripted,noise=0.5": Script(15.0, **EXACT),
    "fake": Script(10.0, **EXACT),
    "dummy/scripted,noise=0.5": Script(8.0, **EXACT),
    "dummy": Script(16.0, **EXACT),
}


def blocks_of(comparison):
    """Return the section of a comparison."""
    return section.blocks(Subject(comparison, [comparison], styles([comparison])))


def run(root, scripts=SCRIPTS, **more):
    """Write a run of two frameworks, each with two values of a setting; returns its view."""
    wanted = options(**{"knobs": ("noise=0.0,0.5",)} | more)
    return view_of(write_run(root, scripts, wanted))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    scripts = {name: replace(each, rounds=1) for name, each in SCRIPTS.items()}
    return run(tmp_path_factory.mktemp("runs"), scripts, protocol="largest-batch:3", memory_limits=("2 GB",))


def effects(view):
    (comparison,) = view.comparisons
    return {each.contender.case.framework: each for each in setting_effects.effects(comparison)}


def test_a_setting_is_compared_with_its_usual_value_in_the_same_framework(view):
    found = effects(view)
    assert found.keys() == {"fake", "dummy"}
    assert [found[name].time.value for name in ("fake", "dummy")] == pytest.approx([1.5, 0.5], rel=1e-5)
    assert [found[name].memory.value for name in ("fake", "dummy")] == pytest.approx([310 / 300, 330 / 320])
    for each in found.values():
        assert (each.contender.case.settings.knobs["noise"], each.usual.case.settings.knobs["noise"]) == (0.5, 0.0)
        assert each.where == each.contender.facts.title


def test_what_differs_in_more_than_a_setting_or_has_no_usual_value_is_not_compared(tmp_path):
    scripts = {"noise=0.25": Script(12.0), "fake": Script(15.0)}
    none_usual = run(tmp_path / "a", scripts, frameworks=("fake",), knobs=("noise=0.25,0.5",))
    assert effects(none_usual) == {}
    (comparison,) = none_usual.comparisons
    assert blocks_of(comparison) == []
    two = run(tmp_path / "b", scripts, frameworks=("fake",), knobs=("noise=0.0,0.5", "process_noise=0.0,0.25"))
    (comparison,) = two.comparisons
    pairs = [(each.value, each.where) for each in setting_effects.effects(comparison)]
    assert sorted(pairs) == [
        ("noise 0.5", "Fake, process_noise 0.0"),
        ("noise 0.5", "Fake, process_noise 0.25"),
        ("process_noise 0.25", "Fake, noise 0.0"),
        ("process_noise 0.25", "Fake, noise 0.5"),
    ]


def test_only_pairs_that_may_be_effects_are_compared_in_all_their_settings(tmp_path, monkeypatch):
    steps = [f"{10_000 + 500 * place}" for place in range(8)]
    wanted = options(frameworks=("fake",), knobs=(f"step_us={','.join(steps)}",))
    view = view_of(write_run(tmp_path, {"fake": Script(rounds=2)}, wanted))
    compared = []
    usual = setting_effects.differences
    monkeypatch.setattr(setting_effects, "differences", lambda *cases: compared.append(cases) or usual(*cases))
    assert len(setting_effects.effects(view.comparisons[0])) == len(steps) - 1
    assert len(compared) == len(steps) - 1, "one for each pair with the default, of 64 pairs"


def test_rows_of_the_same_value_follow_each_other(tmp_path):
    scripts = {
        "fake/scripted,noise=0.5": Script(8.0),
        "noise=0.5": Script(12.0),
        "noise=0.25": Script(9.0),
        "fake": Script(10.0),
        "dummy": Script(11.0),
    }
    (comparison,) = run(tmp_path, scripts, knobs=("noise=0.0,0.25,0.5",)).comparisons
    assert [each.value for each in setting_effects.effects(comparison)] == ["noise 0.25"] * 2 + ["noise 0.5"] * 2


def test_what_passes_of_a_graph_bring_has_a_section_of_its_own(view, monkeypatch):
    monkeypatch.setattr(setting_effects, "PASSES", "noise")
    assert effects(view) == {}


def test_what_is_not_certified_is_in_no_effect(tmp_path):
    scripts = SCRIPTS | {"fake/scripted,noise=0.5": Script(15.0, passed=False)}
    assert effects(run(tmp_path, scripts)).keys() == {"dummy"}


def test_page_terminal_and_json_say_what_a_setting_brings(view, printed):
    (comparison,) = view.comparisons
    (short,) = setting_effects.in_short(comparison)
    assert short == (
        "With noise 0.5 instead of 0.0: in Dummy 0.50x the time per step and 1.03x the peak memory; in Fake 1.50x the time per step "
        "and 1.03x the peak memory."
    )
    found = Page(page.render(view))
    assert "With noise 0.5 instead of 0.0: in Dummy 0.50x the time per step and 1.03x the" in found.text()
    table, *_ = [each for each in found.all("table") if section.HEADING in each.words]
    assert "1.50x [1.50, 1.50]" in table.words
    shown = " ".join(printed(view, 200).split())
    assert (
        "Fake, noise 0.5: 1.50x [1.50, 1.50] the time per step and 1.03x [1.03, 1.03] the peak memory that it has with 0.0."
        in shown
    )
    (plain,) = as_json.as_dict(view)["comparisons"]
    (fake,) = [each for each in plain["setting_effects"] if "/fake/" in each["case"]]
    assert fake["usual"] == fake["case"].replace("noise=0.5", "noise=0.0")
    assert (fake["time"]["value"], fake["batches"]) == (pytest.approx(1.5, rel=1e-5), None)


def test_a_difference_that_is_not_shown_is_undecided(view):
    effect = effects(view)["fake"]
    ends = [
        (0.9, 1.1, "1.00x (undecided)"),
        (1.01, 1.03, "1.02x the"),
        (0.95, 0.99, "0.97x the"),
        (0, math.inf, "1.00x (undecided)"),
    ]
    for low, high, said in ends:
        value = (low + high) / 2 if high < 2 else 1.0
        changed = replace(effect, time=Ratio(value, low, high, 3), memory=None)
        assert setting_effects._in_short(changed).startswith(f"in Fake {said}"), (low, high)


def test_after_one_search_of_each_the_headline_names_the_largest_batch(searched, printed):
    """They fit 96, 88, 80 and 72 samples; 104, 96, 88 and 80 do not fit."""
    effect = effects(searched)["fake"]
    assert (effect.time, effect.memory, effect.batches) == (None, None, (Found(88, 96), Found(96, 104)))
    text = Page(page.render(searched)).text()
    assert "Fake (noise 0.0) has the largest batch, 96, by one search of each contender." in text
    sentence, *_ = as_json.as_dict(searched)["comparisons"][0]["sentences"].values()
    assert sentence.startswith("One search gives no interval and no verdict.")
    assert (
        "With noise 0.5 instead of 0.0: in Fake a batch of 88 instead of 96; in Dummy a batch of 72 instead of 80"
        in text
    )
    assert "Fake, noise 0.5: 88 [96 did not fit], with 0.0 96 [104 did not fit]." in " ".join(
        printed(searched, 200).split()
    )


@pytest.mark.parametrize(
    ("one", "other", "is_open"),
    [
        ((88, 96), (96, 104), False),
        ((96, 104), (88, 96), False),
        ((90, 100), (96, 104), True),
        ((96, 104), (90, 100), True),
        ((96, 0), (104, 112), True),
        ((104, 112), (96, 0), True),
        ((104, 0), (88, 96), False),
        ((96, 104), (96, 108), True),
    ],
)
def test_searches_tell_batches_apart_where_what_fits_one_did_not_fit_the_other(one, other, is_open):
    assert Found(*one).may_equal(Found(*other)) is is_open


def test_a_headline_of_searches_that_tell_nothing_apart_says_so(searched):
    (comparison,) = searched.comparisons

    def headline(*found):
        changed = []
        for contender, (largest, failed) in zip(comparison.contenders, found, strict=False):
            (trial,) = contender.trials
            schedule = replace(trial.job.schedule, batch=largest, failed_batch=failed)
            changed.append(replace(contender, trials=(replace(trial, job=replace(trial.job, schedule=schedule)),)))
        return largest_batch.headline(changed)

    first, second = (each.in_text for each in comparison.contenders[:2])
    assert headline((96, 104), (90, 100), (50, 60)) == (
        f"The largest batch is that of {first} (96) or {second} (90): one search of each contender does not tell them apart."
    )
    assert headline((90, 100), (96, 104), (50, 60)).startswith(
        f"The largest batch is that of {second} (96) or {first} (90):"
    )
    assert (
        headline((80, 88), (96, 104), (50, 60))
        == f"{second} has the largest batch, 96, by one search of each contender."
    )


def test_batches_of_several_searches_are_those_of_all(searched):
    (comparison,) = searched.comparisons
    contender = comparison.contenders[0]
    (trial,) = contender.trials

    def after(*searches):
        jobs = [replace(trial.job, schedule=replace(trial.job.schedule, batch=b, failed_batch=f)) for b, f in searches]
        return largest_batch.found(replace(contender, trials=tuple(replace(trial, job=job) for job in jobs)))

    assert after((96, 104), (88, 96)) == Found(88, 104)
    assert after((96, 104), (1024, 0)) == Found(96, 0)


def test_the_effect_of_an_inference_is_on_the_time_per_batch(tmp_path):
    found = run(tmp_path, tasks=("inference",))
    (comparison,) = found.comparisons
    ((_, table, *lines),) = [panel.blocks for panel in blocks_of(comparison)]
    assert [column.heading for column in table.columns] == ["contender", "instead of", "time per batch", "peak memory"]
    in_short = setting_effects.in_short(comparison)
    assert in_short
    assert all("the time per batch" in sentence for sentence in in_short)
    assert len(lines) == 2
    assert all("the time per batch and" in line.parts[0] for line in lines)
    assert isinstance(next(iter(effects(found).values())), Effect)


def test_the_terminal_names_settings_that_no_title_has(view, printed, tmp_path):
    assert "set to" not in printed(view, 200)
    alone = run(tmp_path, {"fake": Script(10.0), "dummy": Script(12.0)}, knobs=("fake.noise=0.5",))
    shown = printed(alone, 200)
    assert "Fake: set to noise 0.5." in shown
    assert "Dummy: set to" not in shown


def test_no_table_repeats_settings_that_titles_name(view, tmp_path):
    assert "noise" not in "".join(formatting.build(each) for each in view.comparisons[0].contenders)
    alone = run(tmp_path, {"fake": Script(10.0), "dummy": Script(12.0)}, knobs=("fake.noise=0.5",))
    builds = [formatting.build(each) for each in alone.comparisons[0].contenders]
    assert [each.rpartition(", ")[2] for each in builds if "noise" in each] == ["noise 0.5"]


def test_a_setting_that_usual_cases_leave_out_is_compared_with_its_default(tmp_path):
    scripts = {"accumulate=4": Script(20.0, **EXACT), "fake": Script(10.0, **EXACT)}
    (found,) = effects(run(tmp_path, scripts, frameworks=("fake",), knobs=("accumulate=1,4",))).values()
    assert "accumulate" not in found.usual.case.settings.knobs
    assert (found.setting, found.value, found.usual_value, found.where) == ("accumulate", "accumulate 4", "1", "Fake")
    assert found.time.value == pytest.approx(2, rel=1e-5)
