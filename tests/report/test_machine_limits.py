"""How close contenders come to the machine's limits: what bounds a network, shares, energy, and the roofline."""

from __future__ import annotations

import json
import re

import pytest
from recorded import MACHINE, Script, options, view_of, write_run

from steelyard.analysis.machine_limits import machine_limits
from steelyard.report import as_json, page
from steelyard.report.plots import roofline
from steelyard.report.sections.machine_limits import table
from steelyard.report.styles import styles
from steelyard.results import record, trials
from steelyard.results.quantities import PEAK_MEMORY
from steelyard.statistics.roofline import CACHE as IN_CACHES
from steelyard_worker.protocol import EVENTS

SCRIPTS = {"fake": Script(10.0), "dummy": Script(20.0)}
GROUP = {"flops": 10**9, "moved": 10**8, "held": 5 * 10**7}
CACHE = 2**20


def written(tmp_path, scripts=SCRIPTS, gflops=200.0, gbps=10.0, cache=CACHE, wanted=None, **changed):
    """Write a run whose steps of 1 GFLOP move 100 MB at least, on a machine of 200 GFLOP/s and 10 GB/s."""
    work = {**GROUP, **changed}
    batch = 16
    folder = write_run(
        tmp_path,
        scripts,
        wanted or options(threads=(2,)),
        host={**MACHINE, "caches": {"L1d": 2**30, "L2": 2**10, "L3": cache}},
        peak={"float32, 2 threads": {"numpy": gflops}},
        bandwidth={"2": gbps} if gbps else {},
    )
    raw = json.loads((folder / record.FILE).read_text())
    for group in raw["plan"]["groups"]:
        group["training_flops"] = work["flops"] // batch
        group["traffic"] = {"fixed": work["moved"], "sample": 0, "held_fixed": work["held"], "held_sample": 0}
    (folder / record.FILE).write_text(json.dumps(raw))
    return folder


def section(folder):
    (comparison,) = view_of(folder).comparisons
    return machine_limits(comparison)


def cells(found):
    headings, rows = table(found)
    return {row[0]: dict(zip(headings[1:], row[1:], strict=True)) for row in rows}


def roof_of(folder):
    (comparison,) = view_of(folder).comparisons
    return roofline.figure(comparison, machine_limits(comparison).points, styles([comparison]))


def test_below_the_bend_the_bandwidth_of_the_memory_is_the_limit(tmp_path):
    found = section(written(tmp_path))
    assert found.headline == (
        "Of the machine's two limits, the bandwidth of memory is the lower one for this network: Fake comes closest, with at least 100 % "
        "of it."
    )
    assert found.sentences[0] == (
        "A step computes 1.00 GFLOP and must move at least 100 MB between memory and processor: at most 10.0 operations per byte. "
        "With 2 threads this machine reached 200 GFLOP/s in a matrix product and 10.0 GB/s from memory, so the memory is the lower "
        "limit below 20.0 operations per byte. So at most 100 GFLOP/s are possible with data from memory, 50 % of the matrix product."
    )
    fake, dummy = cells(found)["Fake"], cells(found)["Dummy"]
    assert (fake["share of peak"], fake["share of bandwidth"]) == ("50 %", "at least 100 %")
    assert (dummy["share of peak"], dummy["share of bandwidth"]) == ("25 %", "at least 50 %")


def test_above_the_bend_arithmetic_is_the_limit_and_the_sentence_says_up_to_which_traffic(tmp_path):
    found = section(written(tmp_path, moved=10**7, held=5 * 10**6))
    assert found.headline == (
        "Of the machine's two limits, arithmetic is the lower one for this network: Fake comes closest, with 50 % of the matrix product."
    )
    assert found.sentences[0].endswith(
        "A framework that moves more than 5.0 times as much is limited by the memory all the same."
    )


def test_above_the_bend_caches_may_save_what_moves_more(tmp_path):
    found = section(written(tmp_path, moved=10**7, held=CACHE))
    assert found.sentences[0].endswith(
        "is limited by the memory all the same, unless its data stays in the last-level caches."
    )


def test_where_all_are_far_from_the_limit_the_headline_says_what_to_do(tmp_path):
    far = section(written(tmp_path, scripts={"fake": Script(30.0), "dummy": Script(40.0)}))
    assert far.headline.endswith(
        "with at least 33 % of it. Most of the time goes elsewhere: `steelyard explain` shows where."
    )


def test_data_that_a_cache_can_hold_is_not_bound_by_the_memory(tmp_path):
    found = section(written(tmp_path, gbps=1.0, cache=64 * 10**6))
    assert found.limits.bound == IN_CACHES
    assert found.headline.startswith(
        "Of the machine's two limits, arithmetic is the only one that this network cannot avoid: Fake comes closest, with 50 %"
    )
    assert found.sentences[0].endswith(
        "But the data of a step, at least 50.0 MB, may stay in the last-level caches of 64.0 MB. Then the memory is no limit, and "
        "shares of its bandwidth may exceed 100 %."
    )
    assert re.fullmatch(r"at least (99\d|100\d) %", cells(found)["Fake"]["share of bandwidth"])
    assert not any(sentence.startswith("More than 100 % of the bandwidth") for sentence in found.sentences)


def test_shares_above_all_of_it_are_explained(tmp_path):
    found = section(written(tmp_path, gflops=60.0, gbps=4.0))
    assert any(
        sentence
        == "More than 100 % of the matrix product: libraries may be faster than NumPy's, and convolutions may multiply "
        "less often (Fake)."
        for sentence in found.sentences
    )
    assert any(sentence.startswith("More than 100 % of the bandwidth: data that") for sentence in found.sentences)


def test_more_busy_cores_than_given_are_explained(tmp_path):
    found = section(written(tmp_path, wanted=options(threads=(1,))))  # the recorder writes two busy cores
    assert cells(found)["Fake"]["busy cores"] == "2.00 (200 %)"
    assert any(
        sentence.startswith("More than 100 % of the cores")
        and "(Dummy and Fake)" in sentence.replace("Fake and Dummy", "Dummy and Fake")
        for sentence in found.sentences
    )


def test_a_peak_with_other_threads_is_no_limit(tmp_path):
    folder = written(tmp_path, wanted=options(threads=(1,)))
    assert section(folder).limits is None
    assert cells(section(folder))["Fake"].keys() == {"busy cores"}


def test_a_record_without_bandwidth_and_threads_has_its_share_of_the_peak(tmp_path):
    folder = written(tmp_path, gbps=None)
    record.update(folder, peak={"float32": {"numpy": 400.0}})
    found = section(folder)
    assert (found.headline, found.limits, found.points) == ("", None, [])
    assert cells(found)["Fake"] == {"busy cores": "2.00 (100 %)", "share of peak": "25 %"}


@pytest.mark.parametrize(
    ("gflops", "gbps", "flops"), [(-1.0, 10.0, 10**9), (200.0, -1.0, 10**9), (200.0, 10.0, -(10**9))]
)
def test_an_altered_record_has_no_limits(gflops, gbps, flops, tmp_path):
    folder = written(tmp_path, gflops=gflops, gbps=gbps, flops=flops)
    assert section(folder).limits is None
    page.render(view_of(folder))


def test_a_group_recorded_before_traffic_was_counted_can_be_read(tmp_path):
    folder = written(tmp_path)
    raw = json.loads((folder / record.FILE).read_text())
    for group in raw["plan"]["groups"]:
        del group["traffic"]
    (folder / record.FILE).write_text(json.dumps(raw))
    assert "share of bandwidth" not in cells(section(folder))["Fake"]


def test_the_roof_bends_where_both_limits_meet_and_each_contender_is_a_point(tmp_path):
    (roof, *points) = roof_of(written(tmp_path)).data
    assert roof["x"] == [1.25, 20.0, 160.0]
    assert roof["y"] == [12.5, 200.0, 200.0]
    assert {(each["name"], *each["x"]) for each in points} == {("Fake", 10.0), ("Dummy", 10.0)}
    assert {each["name"]: each["y"][0] for each in points} == pytest.approx({"Fake": 100, "Dummy": 50}, rel=0.01)


def test_page_terminal_and_json_have_it(tmp_path, printed):
    view = view_of(written(tmp_path))
    text = page.render(view)
    assert "How close to the machine&#39;s limits" in text
    assert "bandwidth of memory</dt><dd>10.0 GB/s with 2 threads" in " ".join(text.split())
    assert "the bandwidth of memory is the lower one for this network" in " ".join(printed(view, 200).split())
    found = as_json.as_dict(view)["comparisons"][0]
    assert found["limits"]["bound"] == "memory"
    assert found["limits"]["intensity"] == pytest.approx(10)
    assert found["limits"]["roof_flops"] == pytest.approx(1e11)
    speed = next(each for each in found["contenders"] if each["title"] == "Fake")["speeds"]["pipeline"]
    assert speed["share_of_bandwidth"] == pytest.approx(1.0, rel=0.01)
    assert speed["busy_cores"] == pytest.approx(2.0)
    assert speed["joules"] == {}


def metered(folder, energy, percent=None):
    """Add energy and the use of a GPU to every counted block; None: as a record from before meters were looked for."""
    for path in folder.glob(f"{trials.FOLDER}/*/{EVENTS}"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if energy is None:
                line.pop("energy_uj", None)
            elif line["event"] == "samples" and line["phase"] == "counted":
                line |= {"energy_uj": energy, "gpu_percent": percent}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_energy_is_shown_with_its_meters_and_what_they_count(tmp_path):
    folder = written(tmp_path, scripts={"fake": Script(20.0, process_scatter=0.0), "dummy": Script(40.0)})
    metered(folder, {"package-0": 25 * 10**6, "package-0 dram": 25 * 10**5}, 85)  # 25 steps
    found = section(folder)
    assert cells(found)["Fake"]["energy"].startswith("1.10 J (5")
    assert cells(found)["Fake"]["GPU use"] == "85 %"
    assert found.sentences[-1] == (
        "Energy is counted by package-0 and package-0 dram: that of everything that runs there, idle power included, not of the "
        "process alone."
    )


def test_too_short_a_time_has_no_energy(tmp_path):
    folder = written(tmp_path, scripts={"fake": Script(5.0), "dummy": Script(6.0)})
    metered(folder, {"package-0": 10**6})
    found = section(folder)
    assert "energy" not in cells(found)["Fake"]
    assert found.sentences[-1] == (
        "Energy: the counted time of a process is too short for the meter of this machine (package-0)."
    )


def test_without_a_meter_one_sentence_says_so(tmp_path):
    found = section(written(tmp_path))
    assert "energy" not in cells(found)["Fake"]
    assert found.sentences[-1] == "Energy: this machine has no meter that can be read."


def test_a_record_from_before_meters_were_looked_for_says_nothing_of_energy(tmp_path):
    folder = written(tmp_path)
    metered(folder, None)
    assert not any("Energy" in sentence for sentence in section(folder).sentences)


def test_who_is_not_certified_does_not_come_closest(tmp_path):
    found = section(written(tmp_path, scripts={**SCRIPTS, "fake": Script(10.0, passed=False)}))
    assert "Dummy comes closest, with at least 50 %" in found.headline


def test_a_page_that_ranks_something_else_than_steps_leaves_it_out(tmp_path):
    folder = written(tmp_path)
    view = view_of(folder, PEAK_MEMORY)
    assert "How close to the machine" not in page.render(view)
    assert as_json.as_dict(view)["comparisons"][0]["limits"] is None


def test_nothing_measured_is_no_section(tmp_path):
    failed = Script(rounds=0, failure=("crash", "It broke"))
    folder = write_run(tmp_path, {"fake": failed, "dummy": failed})
    assert section(folder) is None
