"""Cost at a price: a multiple of the time or of metered energy, with their verdicts; in no record, and nowhere without a price."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import geometric_mean

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

sys.path.append(str(Path(__file__).parents[1] / "golden"))

import golden_archives

from steelyard import analysis
from steelyard.analysis import choices, energy, formatting, headlines, money
from steelyard.analysis.goals import Wishes
from steelyard.errors import UserError
from steelyard.exports import markdown
from steelyard.report import advice, as_json, columns, page, page_name
from steelyard.report.sections import energy as energy_section
from steelyard.report.sections import money as section
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results.quantities import COST, ENERGY, STEP_TIME, quantity
from steelyard.wording.prices import price

HOUR, ENERGY_PRICE = price("3.60 EUR/h"), price("0.36EUR/kWh")
EUR_PER_S = 0.001
EUR_PER_J = 1e-7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), {"fake": Script(10.0), "dummy": Script(12.0)})


@pytest.fixture(scope="module")
def metered(tmp_path_factory):
    """Two meters of a package: 27.5 J in every block."""
    root = tmp_path_factory.mktemp("metered")
    golden_archives.unpack("limits", root)
    return root / "runs" / "limits"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trainings of three epochs."""
    root = tmp_path_factory.mktemp("trained")
    golden_archives.unpack("epochs", root)
    return root / "runs" / "epochs"


def only(view):
    (comparison,) = view.comparisons
    return comparison


def priced(folder, paid=HOUR):
    return only(analysis.view(folder, price=paid))


def blocks_of(comparison):
    return section.blocks(Subject(comparison, (comparison,), styles([comparison])))


def ends(location):
    return location.value_ns, location.low_ns, location.high_ns


def test_a_cost_is_the_time_times_the_price_with_its_interval(folder):
    comparison = priced(folder)
    source, known = money.costs(comparison)
    assert source == comparison.primary
    assert [cost.contender.title for cost in known] == ["Fake", "Dummy"], "the least first"
    for cost in known:
        time = cost.contender.speeds[source].location
        assert ends(cost.per_step) == pytest.approx([ns / 1e9 * EUR_PER_S for ns in ends(time)])
        assert ends(cost.per_sample) == pytest.approx([value / comparison.batch for value in ends(cost.per_step)])
        assert cost.per_step.processes == time.processes
        assert (cost.per_epoch, cost.training) == (None, None)


def test_whole_trainings_have_the_cost_of_an_epoch_and_of_all_of_them(trained):
    comparison = priced(trained)
    for cost in money.costs(comparison)[1]:
        spent = [sum(trial.epochs_ns.values()) / 1e9 * EUR_PER_S for trial in cost.contender.trials]
        assert cost.epochs == 3
        assert cost.training.value_ns == pytest.approx(geometric_mean(spent))
        assert 0 < cost.per_epoch.value_ns < cost.training.value_ns
    (panel,) = blocks_of(comparison)
    headings = [column.heading for column in panel.blocks[1].columns]
    assert headings[3:] == ["EUR per epoch", "EUR training of 3 epochs"]
    assert panel.blocks[0].parts[0].endswith(section.EVALUATIONS)


def test_the_price_of_energy_needs_a_meter(metered, folder):
    source, known = money.costs(priced(metered, ENERGY_PRICE))
    used = {one.contender.case.id: one for one in energy.energy(priced(metered))[1]}
    assert source
    for cost in known:
        one = used[cost.contender.case.id]
        assert ends(cost.per_step) == pytest.approx([EUR_PER_J * joules for joules in ends(one.per_step)])
        assert ends(cost.per_sample)[0] == pytest.approx(EUR_PER_J * one.per_sample)
        assert cost.training is None, "only counted steps are metered"
    without = priced(folder, ENERGY_PRICE)
    assert money.costs(without) == ("", [])
    (panel,) = blocks_of(without)
    ((said,),) = (block.parts for block in panel.blocks)
    assert said == f"At 0.36 EUR per kilowatt-hour. This price needs the energy. {energy.why_none(without)}"


@pytest.mark.parametrize(("paid", "like"), [(HOUR, STEP_TIME), (ENERGY_PRICE, ENERGY)])
def test_the_verdicts_on_a_cost_are_those_of_what_it_is_computed_from(metered, paid, like):
    cost, other = only(analysis.view(metered, quantity(COST, paid))), only(analysis.view(metered, like))
    for source, ranking in cost.rankings.items():
        assert [(each.a, each.b, each.kind) for each in ranking.verdicts] == [
            (each.a, each.b, each.kind) for each in other.rankings[source].verdicts
        ]
        for mine, its in zip(ranking.verdicts, other.rankings[source].verdicts, strict=True):
            assert (mine.ratio, mine.low, mine.high) == pytest.approx((its.ratio, its.low, its.high))


def test_a_ranking_by_cost_names_the_price_the_currency_and_a_million_steps(folder):
    view = analysis.view(folder, quantity(COST, HOUR))
    comparison = only(view)
    assert headlines.headline(comparison, comparison.primary) == "Fake costs the least."
    assert "Fake costs 1.2" in headlines.verdict(comparison, comparison.primary)
    text = Page(page.render(view)).text()
    assert "Ranked by cost per million steps at 3.60 EUR per hour: less is better." in text
    shown = formatting.standing(comparison, comparison.contenders[0], comparison.primary).value
    assert shown in text
    assert float(shown.removesuffix(" EUR")) == pytest.approx(10, rel=0.01), "a million steps of 10 ms"
    assert as_json.as_dict(view)["quantity"]["unit"] == "EUR per step"
    assert "**Price:** 3.60 EUR per hour" in markdown.text(view)


def test_a_cost_without_a_price_is_one_sentence():
    with pytest.raises(UserError, match=r"^A cost needs a price: give one with --price, such as 1\.2/h, to "):
        quantity(COST)
    with pytest.raises(UserError, match=r"There is no quantity 'costs'\. Did you mean 'cost'\?"):
        quantity("costs")


def test_page_and_json_say_which_price_was_given_and_the_record_does_not(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    view = analysis.view(folder, price=HOUR)
    text, found = Page(page.render(view)).text(), as_json.as_dict(view)
    assert (
        "At 3.60 EUR per hour. A cost is the time times the price, so its verdicts are those of the time per step."
        in text
    )
    assert found["price"] == {"amount": 3.6, "currency": "EUR", "per": "h", "text": "3.60 EUR per hour"}
    (fake, _) = found["comparisons"][0]["cost"]
    assert fake["per_step"]["value"] == pytest.approx(0.01 * EUR_PER_S, rel=0.01)
    assert fake["per_step"]["low"] < fake["per_step"]["value"] < fake["per_step"]["high"]
    assert (fake["per_epoch"], fake["training"], fake["epochs"]) == (None, None, None)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert page_name(view) == "report-with-price.html", "the page of the run stays as it is"


def test_nothing_costs_anything_without_a_price(folder):
    view = analysis.view(folder)
    assert blocks_of(only(view)) == []
    found = as_json.as_dict(view)
    assert "price" not in found
    assert "cost" not in found["comparisons"][0]
    assert page_name(view) == "report.html"


def test_one_process_has_a_cost_without_an_interval(tmp_path):
    comparison = priced(write_run(tmp_path, {"fake": Script(10.0, rounds=1), "dummy": Script(12.0, rounds=1)}))
    (panel,) = blocks_of(comparison)
    assert [cell.note for row in panel.blocks[1].rows for cell in row.cells] == ["[one process]"] * 4
    assert (
        as_json.as_dict(analysis.view(tmp_path / "20260102-030405-test", price=HOUR))["comparisons"][0]["cost"][0][
            "per_step"
        ]["high"]
        is None
    )


def test_the_largest_batches_have_the_cost_and_the_energy_of_their_own_samples(tmp_path):
    """Of two batches, a sample is a share of the one that was timed, and not of the first contender's."""
    golden_archives.unpack("largest-batches", tmp_path)
    view = analysis.view(tmp_path / "runs" / "largest-batches", price=HOUR)
    seen = set()
    for comparison in view.comparisons:
        for cost in money.costs(comparison)[1]:
            batches = {trial.batch for trial in cost.contender.trials}
            if len(batches) == 1:
                (batch,) = batches
                assert cost.per_sample.value_ns == pytest.approx(cost.per_step.value_ns / batch)
                seen.add((batch, comparison.batch))
    assert any(batch != that_of_the_group for batch, that_of_the_group in seen)


def test_advice_on_cost_is_that_on_speed(folder, capsys):
    comparison = priced(folder)
    found = choices.answers(comparison, [comparison], Wishes({"cost": 1.0}))
    ((made, sentence),) = found.choices
    assert sentence.startswith("Choose Fake. Next comes Dummy, with 1.2")
    assert sentence.endswith("the cost per million steps of Fake.")
    speed, _ = choices.answers(comparison, [comparison], Wishes({"speed": 1.0})).choices[0]
    assert made.ratios["cost"] == pytest.approx(speed.ratios["speed"])
    assert "cost" in {goal for each, _ in choices.answers(comparison, [comparison]).choices for goal in each.goals}
    assert advice.show(analysis.view(folder, price=HOUR), Wishes({}))
    printed = " ".join(capsys.readouterr().out.split())
    assert "At 3.60 EUR per hour." in printed
    assert "contender EUR per million steps EUR per million points" in printed
    assert advice.show(analysis.view(folder, price=HOUR), Wishes({}), as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["price"]["text"] == "3.60 EUR per hour"
    assert [each["case"] for each in shown["cost"]] == ["line:small/fake/scripted", "line:small/dummy/scripted"]


def test_advice_on_cost_without_a_price_or_a_meter_ranks_nothing(folder):
    without = only(view_of(folder))
    with pytest.raises(UserError, match="A cost needs a price"):
        choices.answers(without, [without], Wishes({"cost": 1.0}))
    unmetered = priced(folder, ENERGY_PRICE)
    found = choices.answers(unmetered, [unmetered], Wishes({"cost": 1.0}))
    assert found.choices == []
    assert found.missing == [("cost", energy.why_none(unmetered))]


def test_an_inference_has_batches(tmp_path):
    golden_archives.unpack("inference", tmp_path)
    view = analysis.view(tmp_path / "runs" / "inference", quantity(COST, HOUR))
    assert {each.quantity.label for each in view.comparisons} == {"cost per million batches"}
    assert {each.quantity.unit for each in view.comparisons} == {"EUR per batch"}
    (panel, *_) = blocks_of(view.comparisons[0])
    assert panel.blocks[1].columns[1].heading == "EUR per million batches"


@pytest.mark.parametrize("name", ["cost", "energy", "throughput"])
def test_a_ranking_by_a_long_name_fits_a_narrow_terminal(name):
    """The time of a step stood beside the ranked quantity at 80 columns, which cut the last column."""
    ranked = quantity(name, HOUR if name == COST else None)
    shown = [column.heading for column in columns.ranked_by(ranked, "training") if 0 < column.width <= 80]
    assert shown == [f"mean {ranked.label}", f"ratio to {ranked.best}", "first step", "certified"]


def test_advice_on_energy_has_the_table_of_joules(metered, capsys):
    view = analysis.view(metered)
    comparison = only(view)
    ((made, sentence),) = choices.answers(comparison, [comparison], Wishes({"energy": 1.0})).choices
    assert made.thing == "energy per step"
    assert sentence.startswith("Fake and Dummy are practically the same (within 2 %)"), "27.5 J in every block"
    advice.show(view, Wishes({"energy": 1.0}))
    printed = " ".join(capsys.readouterr().out.split())
    assert "Energy contender per step per sample per epoch mean power Fake" in printed
    advice.show(view, Wishes({"energy": 1.0}), as_json=True)
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["energy"][0]["joules_per_step"] > 0
    assert energy_section.blocks(Subject(comparison, (comparison,), styles([comparison])))


@pytest.mark.parametrize(
    ("meters", "sentence"),
    [
        ({}, energy.NO_METER),
        (None, energy.NOT_RECORDED),
        ({"package-0": 10**5}, "is too short for package-0: processors (RAPL) need 1 s, GPUs (NVML) 10 s"),
    ],
)
def test_without_a_meter_one_sentence_says_what_would_be_needed(tmp_path, meters, sentence):
    folder = write_run(tmp_path, {"fake": Script(0.01), "dummy": Script(0.02)}, options(frameworks=("fake", "dummy")))
    for path in folder.glob("trials/*/events.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if meters is None:
                line.pop("energy_uj", None)
            elif line["event"] == "samples":
                line["energy_uj"] = meters
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    comparison = only(view_of(folder))
    found = choices.answers(comparison, [comparison], Wishes({"energy": 1.0}))
    assert found.choices == []
    ((goal, reason),) = found.missing
    assert goal == "energy"
    assert sentence in reason
    assert reason.count(". ") == 0, "one sentence"


def test_trade_offs_with_energy_are_drawn_and_in_json(metered, folder):
    view = analysis.view(metered)
    html = Page(page.render(view))
    assert "trade-off/line:small/J" in html.figures()
    found = {tuple(each["goals"]): each for each in as_json.as_dict(view)["comparisons"][0]["trade_offs"]}
    assert list(found) == [("speed", "memory"), ("speed", "start"), ("speed", "energy")]
    known = found["speed", "energy"]
    assert known["units"] == {"speed": "ns", "energy": "J"}
    fake, dummy = known["contenders"]
    assert (fake["beaten"], dummy["beaten"]) == (False, True)
    used = {one.contender.title: one.per_step.value_ns for one in energy.energy(only(view))[1]}
    assert fake["values"]["energy"] == pytest.approx(used["Fake"])
    assert fake["values"]["speed"] == pytest.approx(only(view).contenders[0].speeds["pipeline"].location.value_ns)
    without = as_json.as_dict(view_of(folder))["comparisons"][0]["trade_offs"]
    assert [each["goals"][1] for each in without] == ["memory", "start"], "nothing is drawn without a meter"
