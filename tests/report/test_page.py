"""The page is complete, needs no network, and shows every restriction of a result."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import jinja2
import pytest
from reading import Page, check_policy
from recorded import Script, options, view_of, write_run

from steelyard.report import as_json, page
from steelyard.report.columns import ranked_by
from steelyard.report.privacy import without_names
from steelyard.results import record
from steelyard.results.quantities import STEP_TIME

HOSTILE = '<script>alert("&")</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def rendered(recorded_view):
    return Page(page.render(recorded_view))


def test_templates_are_compiled_once_in_a_process(recorded_view, monkeypatch):
    compiled, compile_ = [], jinja2.Environment.compile
    monkeypatch.setattr(page, "COMPILED", page.Compiled())
    monkeypatch.setattr(jinja2.Environment, "compile", lambda *a, **b: compiled.append(a[2]) or compile_(*a, **b))
    texts = [page.render(recorded_view) for _ in range(2)]
    assert compiled[0] == page.PAGE
    assert len(compiled) == len(set(compiled))
    assert texts[0] == texts[1]


def test_every_contender_is_in_the_table_of_every_input(rendered):
    rows = [row.words for row in rendered.all("th", scope="row") if "small" not in row.parents]
    assert sum(row.startswith("● Dummy") for row in rows) == 2
    assert sum(row.startswith("■ Fake") for row in rows) == 2
    assert rendered.text().count("1.2.3, scripted") >= 4


def test_the_verdict_comes_first(rendered):
    (headline,) = rendered.all("p", class_="headline")
    assert headline.words == "Fake is the fastest."
    (clauses,) = rendered.all("ul", class_="clauses")
    assert re.fullmatch(r"Fake is 1\.\d\dx \[1\.\d\d, 1\.\d\d\] faster than Dummy\.", clauses.words)


def test_of_many_comparisons_the_first_are_shown_and_the_others_are_one_click_away(tmp_path):
    times = range(101, 116)
    scripts = {f"step_us={number}": Script(step_ms=10.0 * 1.2**place) for place, number in enumerate(times)}
    wanted = options(frameworks=("fake",), knobs=(f"fake.step_us={','.join(map(str, times))}",))
    found = Page(page.render(view_of(write_run(tmp_path, scripts, wanted))))
    named = [re.findall(r"than Fake \(step_us (\d+)\)", each.words) for each in found.all("ul", class_="clauses")]
    assert named == [[str(number) for number in times[1:4]], [str(number) for number in times[4:]]]
    shown, folded = found.all("ul", class_="clauses")
    assert "details" not in shown.parents and "details" in folded.parents
    folds = [each.words for each in found.all("summary")]
    assert folds.count("More comparisons: 11") == 1, "below the drawing of the ratios"
    assert folds.count("More comparisons: 2") == 1, "beside the table of the input that does not stand above"


def test_the_page_needs_no_network(rendered):
    for element in rendered.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert (element.attributes.get(name) or "#").startswith("#"), element
    (style,) = rendered.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text
    assert not rendered.all("link") and not rendered.all("iframe")
    assert "plotly.js" in rendered.library()[:200]


def test_the_page_allows_only_its_own_scripts_and_styles(rendered):
    check_policy(rendered, scripts=2)


def test_on_paper_a_comparison_is_its_answer_and_one_table(recorded_view, rendered):
    """A sheet has room for two comparisons of five contenders; what is longer is on the screen alone."""
    printed = [each for each in rendered.elements if each.on_paper]
    count = len(recorded_view.comparisons)
    assert [each.tag for each in printed].count("table") == count
    assert not [each for each in printed if each.tag in ("nav", "figure", "svg", "details")]
    words = sum(len(each.words.split()) for each in printed if each.tag in ("p", "li", "dd", "h1", "h2", "h3"))
    assert words < 200 * count, "two comparisons with 430 words filled nine tenths of a sheet, with tables of five rows"


def test_the_page_has_no_home_folder_and_no_user_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/srv/people/alice")
    monkeypatch.setenv("LOGNAME", "alice")
    folder = write_run(
        tmp_path / "alice",
        {"fake": Script(), "dummy": Script(failure=("crash", "No file /srv/people/alice/x.bin."))},
        options(external={"fake": "/opt/of-alice/bin/python"}),
        command="steelyard run --data /home/bob/pictures --env fake=/Users/carol/env/bin/python",
        inputs={"line:small": {"origin": "your data in /srv/people/alice/data", "identity": "0123", "meta": {}}},
    )
    path = folder / record.CERTIFICATES
    path.write_text(path.read_text().replace("Every tensor agrees", "In /srv/people/alice/cache every tensor agrees"))
    with (folder / record.ROUNDS).open("a") as rounds:
        rounds.write("garbage\n")
    text = re.sub('id="library">[^<]*', "", page.render(view_of(folder)))
    shown = Page(text).text()
    for name in ("alice", "bob", "carol"):
        assert name not in text, name
    for wanted in ("~/pictures", "~/x.bin", "your data in ~/data", "/opt/of-user/bin/python", "fake=~/env/bin/python"):
        assert wanted in shown, wanted


def test_the_page_is_small_enough_for_a_phone(rendered):
    assert len(rendered.html) < 2_500_000


def test_every_plot_has_a_title_a_description_and_data(rendered):
    drawn = rendered.figures()
    holders = rendered.all("div", class_="plot")
    assert [holder.attributes["data-figure"] for holder in holders] != []
    assert sorted(holder.attributes["data-figure"] for holder in holders) == sorted(drawn)
    for holder in holders:
        assert len(holder.attributes["aria-label"]) > 30
        assert drawn[holder.attributes["data-figure"]]["data"]
    kinds = {name.partition("/")[0] for name in drawn}
    assert kinds == {
        "ratios",
        "steps",
        "rounds",
        "losses",
        "start",
        "job length",
        "trade-off",
        "memory",
        "machine",
        "confusion",
    }


def test_table_cells_are_associated_with_their_headings(rendered):
    assert all(cell.attributes.get("scope") in ("col", "row") for cell in rendered.all("th"))
    labels = {label.words for label in rendered.all("span", class_="label-in-card")}
    assert labels == {column.heading for column in ranked_by(STEP_TIME, "training")}


def test_headings_do_not_skip_a_level(rendered):
    levels = [int(element.tag[1]) for element in rendered.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_has_what_is_needed_to_reproduce_the_run(rendered, recorded_view):
    text = rendered.text()
    assert rendered.all("pre")[0].words == "steelyard run -f fake -f dummy"
    for wanted in (
        recorded_view.record.worker_hash,
        recorded_view.name,
        without_names(str(recorded_view.folder)),
        "feed0123",
        "Test Processor",
    ):
        assert wanted in text


def test_settings_are_shown_as_the_framework_reported_them(tmp_path):
    scripts = {"fake": Script(applied={"layout": "channels_last", "nested": {"depth": 3}}), "dummy": Script()}
    text = Page(page.render(view_of(write_run(tmp_path, scripts)))).text()
    assert "layout channels_last" in text
    assert "nested.depth 3" in text
    assert "blas.name openblas" in text


def test_a_certificate_has_its_details(rendered):
    (inside, *_) = [part.words for part in rendered.all("details") if part.words.startswith("Detail for Fake")]
    assert inside == "Detail for Fake key recorded worst units 9 checks name error logits 1e-07"


def test_what_the_table_says_of_a_certificate_opens_its_sentence(rendered, recorded_view):
    links = [each for each in rendered.all("a") if each.attributes.get("href", "").startswith("#proof-")]
    assert {each.words for each in links} == {"yes"}
    places = {each.attributes["id"]: each.words for each in rendered.all("li") if "id" in each.attributes}
    for contender in recorded_view.comparisons[0].contenders:
        assert contender.proof.sentence in places[f"proof-{contender.case.id}"]
    assert {each.attributes["href"][1:] for each in links} <= places.keys()


def test_an_interval_is_explained_once(rendered):
    assert rendered.text().count("95 % confidence") == 1


def test_a_rejected_contender_is_marked_and_not_used_in_verdicts(uncertified_view):
    found = Page(page.render(uncertified_view))
    assert found.all("p", class_="headline")[0].words == "No verdict: only Fake has a valid, certified result."
    assert len(found.all("tr", class_="rejected")) == 2
    assert "head.bias after 1 step is off by 3.1e-02." in found.text()
    traces = {
        str(t.get("hovertemplate")).partition("<")[0]: t
        for t in found.figures()["ratios/line:small/cached"]["data"]
        if t["mode"] == "markers"
    }
    assert traces["Dummy"]["marker"]["symbol"] == "circle-open"
    assert traces["Fake"]["marker"]["symbol"] == "square"
    lines = [t["line"]["dash"] for t in found.figures()["ratios/line:small/cached"]["data"] if t["mode"] == "lines"]
    assert sorted(lines) == ["dot", "solid"]


def test_without_certificates_there_is_no_verdict(tmp_path):
    folder = write_run(tmp_path, {"fake": Script(passed=None), "dummy": Script(12.0, passed=None)})
    (folder / "certificates.json").unlink()
    found = Page(page.render(view_of(folder)))
    assert found.all("p", class_="headline")[0].words == "No verdict: no contender has a valid, certified result."
    assert len(found.all("tr", class_="none")) == 4
    traces = found.figures()["ratios/line:small/cached"]["data"]
    assert {t["marker"]["symbol"] for t in traces if t["mode"] == "markers"} == {"circle-open", "square-open"}


def test_one_process_each_gives_no_verdict(tmp_path):
    found = Page(page.render(view_of(write_run(tmp_path, {"fake": Script(rounds=1), "dummy": Script(12.0, rounds=1)}))))
    assert found.all("p", class_="headline")[0].words == "No verdict: only one process of each contender was measured."
    assert "--rounds 5" in found.text()
    assert "[one process]" in found.text()


def test_failed_and_skipped_contenders_are_listed_with_reasons(tmp_path):
    scripts = {
        "fake": Script(),
        "dummy": Script(rounds=2, failure=("out-of-memory", "The worker ran out of memory.")),
        "pytorch": Script(),
    }
    found = Page(page.render(view_of(write_run(tmp_path, scripts, options(frameworks=("fake", "dummy", "pytorch"))))))
    choices, reasons = found.all("dl", class_="reasons")
    assert "Failed." not in choices.words
    assert "Failed. The worker ran out of memory." in reasons.words
    assert "Its 2 finished processes are shown but not used in any verdict." in reasons.words
    assert "no implementation of line" in reasons.words


def test_a_contender_without_results_has_no_row(tmp_path):
    scripts = {"fake": Script(), "dummy": Script(rounds=0, failure=("crash", "It fell over."))}
    found = Page(page.render(view_of(write_run(tmp_path, scripts))))
    assert not [row for row in found.all("th", role="rowheader") if "Dummy" in row.words]
    assert "It fell over." in found.text()


def test_a_run_in_which_nothing_was_measured_still_gives_a_page(tmp_path):
    scripts = {
        "fake": Script(rounds=0, failure=("crash", "One.")),
        "dummy": Script(rounds=0, failure=("crash", "Two.")),
    }
    assert "Nothing was measured." in Page(page.render(view_of(write_run(tmp_path, scripts)))).text()


def test_an_interrupted_run_is_marked(recorded_view):
    stopped = replace(recorded_view, record=replace(recorded_view.record, state="interrupted"))
    assert "interrupted: results so far" in Page(page.render(stopped)).text()


def test_values_from_the_record_are_escaped(recorded_view):
    comparison = recorded_view.comparisons[0]
    contenders = tuple(
        replace(
            c,
            title=HOSTILE,
            mode=HOSTILE,
            version=HOSTILE,
            failure=HOSTILE,
            applied={HOSTILE: HOSTILE},
            libraries={HOSTILE: [HOSTILE]},
            proof=replace(c.proof, sentence=HOSTILE, details={HOSTILE: HOSTILE, "rows": [{HOSTILE: HOSTILE}]}),
        )
        for c in comparison.contenders
    )
    sentences = dict.fromkeys(comparison.sentences, f"{HOSTILE} [{HOSTILE}]")
    hostile = replace(
        comparison,
        title=HOSTILE,
        group=HOSTILE,
        preset=HOSTILE,
        unit=HOSTILE,
        origin=HOSTILE,
        contenders=contenders,
        sentences=sentences,
    )
    warnings = tuple(replace(w, subject=HOSTILE, sentence=HOSTILE, advice=HOSTILE) for w in recorded_view.warnings)
    plan = recorded_view.record.plan
    study = replace(plan.study, name=HOSTILE, title=HOSTILE, question=HOSTILE)
    groups = tuple(
        replace(group, protocol=replace(group.protocol, name=HOSTILE, summary=HOSTILE)) for group in plan.groups
    )
    known = replace(
        recorded_view.record,
        plan=replace(plan, study=study, groups=groups),
        command=HOSTILE,
        steelyard=HOSTILE,
        host={"cpu_model": HOSTILE, "unknown": {HOSTILE: HOSTILE}},
        environments={
            HOSTILE: {
                "version": HOSTILE,
                "python": HOSTILE,
                "python_version": HOSTILE,
                "packages": {HOSTILE: HOSTILE},
                "external": True,
            }
        },
        inputs={HOSTILE: {"origin": HOSTILE, "identity": HOSTILE}},
    )
    disturbed = tuple({**line, "group": HOSTILE} for line in recorded_view.disturbances)
    found = Page(
        page.render(
            replace(
                recorded_view,
                name=HOSTILE,
                record=known,
                comparisons=(hostile,),
                warnings=warnings,
                disturbances=disturbed,
            )
        )
    )
    assert len(found.all("script")) == 4
    assert not found.all("img")
    assert not re.search(r"<script>alert|<img", found.html)
    plotted = str([figure["layout"] for figure in found.figures().values()]) + str(
        [figure["data"] for figure in found.figures().values()]
    )
    assert "<script" not in plotted and "<img" not in plotted
    assert "&lt;script&gt;" in plotted


def test_an_impossibly_fast_result_is_invalid(tmp_path):
    scripts = {"fake": Script(10.0), "dummy": Script(12.0)}
    above_peak = {"line:small/fake/scripted": "It would need 9 times the arithmetic peak."}
    view = view_of(write_run(tmp_path, scripts, above_peak=above_peak))
    found = Page(page.render(view))
    assert "9 times the arithmetic peak" in found.all("p", class_="alarm")[0].words
    assert found.all("p", class_="headline")[0].words == "No verdict: only Dummy has a valid, certified result."
    assert "invalid" in found.text()


def test_paper_has_question_answer_table_and_what_was_measured(rendered):
    """Everything else has the class `screen`, which the style sheet hides in print."""
    (style,) = rendered.all("style")
    assert ".screen, .explanation { display: none !important; }" in style.text.partition("@media print")[2]
    sections = {
        each.attributes["id"]: "screen" in each.attributes.get("class", "")
        for each in rendered.all("section")
        if "id" in each.attributes
    }
    assert sections == {
        "line-small": False,
        "certificates": True,
        "warnings": True,
        "setting": True,
        "repeat": True,
        "glossary": True,
    }
    inputs = rendered.all("div", class_="input")
    assert ["screen" in each.attributes["class"] for each in inputs] == [False, True, True, True, True]
    plots = rendered.all("div", class_="plots")
    assert plots and {each.attributes["class"] for each in plots} == {"plots screen"}
    (paper,) = rendered.all("p", class_="paper")
    assert "Protocol sequential" in paper.words and "steelyard run -f fake -f dummy" in paper.words


def test_the_peak_memory_of_phases_has_a_table_where_it_is_known(tmp_path):
    scripts = {"fake": Script(memory={"import": 100 * 2**20, "counted": 200 * 2**20}), "dummy": Script()}
    view = view_of(write_run(tmp_path, scripts))
    (table,) = [each for each in Page(page.render(view)).all("table") if "Peak memory by phase" in each.words]
    assert "memory of import" in table.words
    assert "100 MiB" in table.words
    assert "200 MiB" in table.words
    assert "Dummy" not in table.words
    (contenders,) = [each["contenders"] for each in as_json.as_dict(view)["comparisons"]]
    by_phase = {each["title"]: each["memory_by_phase"] for each in contenders}
    assert by_phase["Fake"] == pytest.approx({"memory of import": 100 * 2**20, "memory of counted steps": 200 * 2**20})
    assert by_phase["Dummy"] == {}


def test_without_known_phases_there_is_no_table_of_them(rendered):
    assert "Peak memory by phase" not in rendered.text()


def test_the_largest_batches_are_ranked_and_the_next_ones_that_did_not_fit_are_shown(tmp_path):
    wanted = options(protocol="largest-batch:3", memory_limits=("2 GB",))
    view = view_of(write_run(tmp_path, {"fake": Script(), "dummy": Script(12.0)}, wanted))
    (comparison,) = view.comparisons
    assert [each.standings["cached"].value for each in comparison.contenders] == pytest.approx([96, 88])
    assert [each.speeds["cached"].throughput for each in comparison.contenders] == pytest.approx(
        [96 / 0.01, 88 / 0.012], rel=0.02
    )
    found = Page(page.render(view))
    table, *_ = [each for each in found.all("table") if "96 [104 did not fit]" in each.words]
    assert "88 [96 did not fit]" in table.words
    assert "the largest batch that trains within 2 GB of memory" in found.text()
    (headline,) = found.all("p", class_="headline")
    assert headline.words == "Fake has the largest batch."


def test_it_is_said_that_contenders_took_turns(rendered, recorded_view):
    said = "After their warm-up, the contenders of a round compute in turns of at least 0.25 s."
    assert said in rendered.text()
    groups = tuple(
        replace(each, protocol=replace(each.protocol, schedule=replace(each.protocol.schedule, turns=0)))
        for each in recorded_view.record.plan.groups
    )
    plan = replace(recorded_view.record.plan, groups=groups)
    without = replace(recorded_view, record=replace(recorded_view.record, plan=plan))
    assert said not in Page(page.render(without)).text()
