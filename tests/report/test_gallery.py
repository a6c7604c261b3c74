"""Many runs side by side: rows of one table have the same method and settings, and of all others it is said why not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from reading import Page, check_policy
from recorded import MACHINE, Script, options, view_of, write_run

from steelyard.analysis import gallery
from steelyard.report import small_page
from steelyard.report.sections import gallery as section
from steelyard_worker.protocol import METHOD


@pytest.fixture
def row(tmp_path):
    """Return a function that writes a run of two contenders and returns its only row of a gallery."""

    def made(name, wanted=None, fake=10.0, dummy=12.0, **head):
        scripts = {"fake": Script(step_ms=fake), "dummy": Script(step_ms=dummy)}
        folder = write_run(tmp_path / name, scripts, wanted, **head)
        (found,) = gallery.entries(view_of(folder.rename(folder.with_name(name))))
        return found

    return made


def tables(*rows):
    """Return all tables of the only network of a gallery."""
    (network,) = gallery.gallery(rows).workloads
    return [table for each in network.sizes.values() for table in each]


def test_runs_of_the_same_settings_are_in_one_table_the_newest_first(row):
    old, new = row("old"), row("new", created="2099-05-01T00:00:00+00:00", machine="f" * 16)
    (table,) = tables(old, new)
    assert [each.run for each in table.entries] == ["new", "old"]
    assert table.unlike == ()
    assert table.titles == {"fake/scripted": "Fake", "dummy/scripted": "Dummy"}
    assert table.sentence == "The order of contenders is the same on 2 of 2 machines: Fake, Dummy."
    assert gallery.gallery([old, new]).machines == 2


@pytest.mark.parametrize(
    ("wanted", "head", "differs"),
    [
        ({}, {"method": 3}, ("method of measuring", str(METHOD), "3")),
        ({"threads": (1,)}, {}, ("threads", "2", "1")),
        ({"seeds": (7,)}, {}, ("seed", "1", "7")),
        ({"precisions": ("float64",)}, {}, ("precision", "float32", "float64")),
        ({"optimizers": ("adam",)}, {}, ("optimizer name", "sgd", "adam")),
        ({"protocol": "fixed:5+20"}, {}, ("schedule warmup", "adaptive", "5 steps")),
        ({"knobs": ("fake.step_us=100",)}, {}, None),
    ],
)
def test_runs_of_another_method_or_of_other_settings_are_in_another_table_that_says_why(row, wanted, head, differs):
    usual = [row("one"), row("two", machine="f" * 16)]
    first, *others = tables(*usual, row("other", options(**wanted), **head))
    if differs is None:  # the other run has Dummy in common, and another variant of Fake
        assert others == []
        assert set(first.titles) == {"fake/scripted", "dummy/scripted", "fake/scripted,step_us=100"}
        return
    (apart,) = others
    assert [each.run for each in apart.entries] == ["other"]
    assert differs in [tuple(each) for each in apart.unlike]
    assert {each.run for each in first.entries} == {"one", "two"}


def test_a_batch_is_a_heading_of_its_own_and_a_task_is_one(row):
    found = gallery.gallery(
        [row("one"), row("two", options(batches=(32,))), row("three", options(tasks=("inference",)))]
    )
    (network,) = found.workloads
    assert [tuple(size) for size in network.sizes] == [
        ("small", "inference", 16),
        ("small", "training", 16),
        ("small", "training", 32),
    ]


def test_runs_without_a_contender_in_common_are_not_compared(row, tmp_path):
    folder = write_run(tmp_path / "x", {"fake": Script()}, options(frameworks=("fake",), knobs=("fake.step_us=77",)))
    (other,) = gallery.entries(view_of(folder))
    _, apart = tables(row("one"), row("two", machine="f" * 16), other)
    assert [each.name for each in apart.unlike] == ["no contender in common"]


def test_no_two_rows_of_a_table_differ_in_what_decides_a_number(row):
    """Being comparable is no chain: A and B, B and C may share settings of what they have in common, and A and C not."""
    one, two = row("one"), row("two", machine="f" * 16)
    variant = "dummy/scripted"
    changed = replace(one.cases[variant], settings=replace(one.cases[variant].settings, mode="other"))
    three = replace(one, run="three", cases={**one.cases, variant: changed})
    without = replace(two, run="without", cases={name: case for name, case in two.cases.items() if name != variant})
    for given in ([one, two, three, without], [three, without, one, two], [without, three, two, one]):
        for table in tables(*given):
            pairs = [(a, b) for a in table.entries for b in table.entries]
            assert not any(gallery.unlike(a, b) for a, b in pairs)


def page_of(rows):
    found = gallery.gallery(rows)
    addresses = {name: f"runs/{place}.html" for place, name in enumerate(found.runs)}
    return Page(small_page.render(section.page(found, addresses)))


def test_a_row_says_what_was_measured_where_and_when_and_leads_to_the_page_of_its_run(row):
    host = {**MACHINE, "gpus": ["GPU X"]}
    page = page_of([row("one", host=host, created="2026-05-01T07:08:00+00:00")])
    check_policy(page, scripts=1)
    cells = {each.attributes.get("role"): each for each in page.all("tr")}
    words = cells["row"].words
    for wanted in (
        "Test Processor",
        "2 cores, 8 GiB memory, GPU X, Linux, virtual machine",
        "01234567",
        "2026-05-01",
        "Fake is the fastest.",
        "fastest",
        "1.2.3, scripted",
        "all 2",
    ):
        assert wanted in words, wanted
    assert re.search(r"1\.\d\dx \[1\.\d\d, 1\.\d\d\]", words)
    (link,) = [each for each in page.all("a") if each.attributes["href"].startswith("runs/")]
    assert (link.attributes["href"], link.words) == ("runs/0.html", "one")
    assert "small, training, batch 16" in page.text()
    assert "device: cpu; threads: 2; precision: float32" in page.text()


def test_what_is_not_certified_and_what_is_not_comparable_is_said(row, tmp_path):
    folder = write_run(tmp_path / "u", {"fake": Script(), "dummy": Script(passed=False)}, options(threads=(1,)))
    rejected = gallery.entries(view_of(folder))
    page = page_of([row("one"), row("two", machine="f" * 16), *rejected])
    assert "1 of 2 Dummy: REJECTED" in page.text()
    assert "not certified" in page.text()
    assert "Not comparable with the first table of this size: threads (1 here, 2 there)." in page.text()


def test_a_gallery_that_has_more_networks_leads_to_each(row):
    one = row("one")
    other = replace(one, run="two", cases={name: replace(case, workload="abc") for name, case in one.cases.items()})
    page = page_of([one, other])
    assert [each.attributes["href"] for each in page.all("a") if each.words == "Line"] == ["#network-1", "#network-2"]
    assert {each.attributes["id"] for each in page.all("section") if "id" in each.attributes} >= {
        "network-1",
        "network-2",
    }
