"""Two runs compared: which classes of operations moved, and in which facts, packages and settings the runs differ."""

from __future__ import annotations

import json
import re

import pytest
from recorded import MACHINE, Script, view_of, write_run
from recorded_profiles import write_profile

from steelyard.analysis import changes, compare
from steelyard.errors import UserError
from steelyard.results import record
from steelyard.results.quantities import QUANTITIES
from steelyard.statistics.intervals import Ratio

PACKAGES = {"fake": {"version": "1.2.3", "python": "python", "python_version": "3.11.7", "external": True}}


def environments(**packages):
    """Return what run.json holds of the environment of Fake with these packages."""
    return {"fake": {**PACKAGES["fake"], "packages": packages}}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a run of Fake alone under a name of its own; more is for its record."""

    def write(name, step_ms, applied=None, **head):
        scripts = {"fake": Script(step_ms, applied=applied or {})}
        folder = write_run(tmp_path / name, scripts, **head)
        return folder.rename(folder.with_name(name))

    return write


def findings(before, after, quantity="step time", anyway=False):
    """Return what is found of each input."""
    views = (view_of(each, QUANTITIES[quantity]) for each in (before, after))
    return {each.input: each for each in compare.runs(*views, anyway)}


@pytest.mark.parametrize(
    ("quantity", "low", "high", "said"),
    [
        ("step time", 0.882, 1.049, "more than 12 % faster and more than 4.9 % slower are ruled out"),
        ("step time", 0.9951, 1.132, "more than 0.5 % faster and more than 14 % slower are ruled out"),
        ("throughput", 0.882, 1.049, "more than 12 % lower and more than 4.9 % higher are ruled out"),
    ],
)
def test_an_interval_of_no_change_is_told_on_both_sides(write, quantity, low, high, said):
    view = view_of(write("a", 10.0), QUANTITIES[quantity])
    (comparison,) = view.comparisons
    sentence = compare._change(comparison, comparison.contenders[0], Ratio(1.0, low, high, 5), "1.0")
    assert f"[{low:.3f}, {high:.3f}]" in sentence
    assert said in sentence


def test_the_class_that_moved_is_named_with_its_times(write):
    before, after = write("before", 10.0), write("after", 12.0)
    write_profile(before, "fake", 6.0, 3.0)
    write_profile(after, "fake", 8.0, 3.0)
    found = findings(before, after)
    cause = found["pipeline"].cause
    assert cause.sentence == "Profiled step 10.0 ms -> 12.0 ms: matrix product 6.00 ms -> 8.00 ms."
    moved = {each.kind: (each.b_ns, each.a_ns) for each in cause.classes}
    assert moved == {
        "matrix product": pytest.approx((6e6, 8e6)),
        "optimizer": pytest.approx((3e6, 3e6)),
        "host gap": pytest.approx((1e6, 1e6)),
    }
    assert sum(a - b for b, a in moved.values()) == pytest.approx(2e6)
    assert found["cached"].cause == changes.Cause()  # the profile is of the other input


@pytest.mark.parametrize(("step_ms", "profiled_ms"), [(10.0, 8.0), (12.0, 4.0)])
def test_a_profile_that_does_not_explain_the_measurement_is_doubted(write, step_ms, profiled_ms):
    before, after = write("before", 10.0), write("after", step_ms)
    write_profile(before, "fake", 6.0, 3.0)
    write_profile(after, "fake", profiled_ms, 3.0)
    assert {
        10.0: "No change was detected by the measurement, so this may be chance.",
        12.0: "The measurement found a change in the other direction, so this does not explain it.",
    }[step_ms] in findings(before, after)["pipeline"].cause.sentence


@pytest.mark.parametrize("quantity", ["throughput", "step time"])
def test_a_higher_throughput_is_a_shorter_time(write, quantity):
    before, after = write("before", 12.0), write("after", 10.0)
    write_profile(before, "fake", 8.0, 3.0)
    write_profile(after, "fake", 6.0, 3.0)
    sentence = findings(before, after, quantity)["pipeline"].cause.sentence
    assert sentence == "Profiled step 12.0 ms -> 10.0 ms: matrix product 8.00 ms -> 6.00 ms."


def test_classes_of_a_step_explain_no_memory_and_nobody_is_sent_to_profile_for_it(write):
    before, after = write("before", 12.0), write("after", 10.0)
    for each in findings(before, after, "peak memory").values():
        assert each.cause == changes.Cause()


def test_a_costly_profiler_and_another_machine_are_doubts(write):
    before, after = write("before", 10.0), write("after", 12.0, machine="fedcba9876543210")
    write_profile(before, "fake", 6.0, 3.0, slow_down=1.19)
    write_profile(after, "fake", 8.0, 3.0, slow_down=1.5)
    sentence = findings(before, after, anyway=True)["pipeline"].cause.sentence
    assert "The profiler slowed this down (1.50x after)" in sentence
    assert "of different machines" in sentence
    assert "There is no measured interval beside it" in sentence


def test_without_a_profile_the_command_that_takes_it_is_named(write):
    before, after = write("before", 10.0), write("after", 12.0)
    write_profile(before, "fake", 6.0, 3.0)
    cause = findings(before, after)["pipeline"].cause
    assert cause.classes == ()
    assert cause.sentence.endswith("steelyard explain --run after")
    assert "--run before" not in cause.sentence


def test_a_profile_that_failed_is_said_with_its_reason(write):
    before, after = write("before", 10.0), write("after", 12.0)
    write_profile(before, "fake", 6.0, 3.0)
    (write_profile(after, "fake", 8.0, 3.0) / "rules.json").write_text("{}")
    sentence = findings(before, after)["pipeline"].cause.sentence
    assert sentence.startswith("Fake could not be profiled in run after: The profile in")


def test_a_profile_whose_numbers_were_altered_explains_nothing(write):
    before, after = write("before", 10.0), write("after", 12.0)
    write_profile(before, "fake", 6.0, 3.0)
    path = write_profile(after, "fake", 8.0, 3.0) / "profile" / "operations" / "tensors.bin"
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert "does not hold what was written" in findings(before, after)["pipeline"].cause.sentence


def test_packages_settings_and_facts_that_differ_are_listed(write):
    before = write("before", 10.0, {"interop": 2}, environments=environments(numpy="2.0.0", threadpools="1.0"))
    after = write("after", 12.0, {"interop": 4}, environments=environments(numpy="2.0.0", pools="3.1"), steelyard="9.9")
    found = findings(before, after)["pipeline"].differences
    assert {(each.kind, each.name): (each.b, each.a) for each in found if each.name != "steelyard"} == {
        ("package", "pools"): (None, "3.1"),
        ("package", "threadpools"): ("1.0", None),
        ("setting", "interop"): (2, 4),
    }
    assert changes.sentences(found, changes.OWN) == [
        "Packages: pools none -> 3.1, threadpools 1.0 -> none.",
        "Settings as read back: interop 2 -> 4.",
    ]
    (of_runs,) = changes.sentences(found, changes.COMMON)
    assert re.fullmatch(r"Runs: steelyard \S+ -> 9\.9\.", of_runs)


def test_equal_runs_differ_in_nothing(write):
    assert findings(write("before", 10.0), write("after", 12.0))["pipeline"].differences == ()


def test_many_packages_are_counted_and_a_long_text_is_left_to_json(write):
    many = {f"package{number:02d}": "1" for number in range(15)}
    before = write("before", 10.0, {"build": "a" * 90}, environments=environments())
    after = write("after", 12.0, {"build": "b" * 90}, environments=environments(**many))
    packages, settings = changes.sentences(findings(before, after)["pipeline"].differences, changes.OWN)
    assert "package11 none -> 1 and 3 more (--json lists all)." in packages
    assert settings == "Settings as read back: build (--json has both texts)."


def test_the_refusal_of_another_machine_names_its_facts(write):
    before = write("before", 10.0, host={**MACHINE, "cpu_flags": ["avx2", "fma"], "memory_bytes": 8 * 2**30 + 4096})
    after = write("after", 12.0, machine="fedcba9876543210", host={**MACHINE, "cpu_flags": ["fma", "amx"]})
    with pytest.raises(UserError, match=re.escape("they differ in: the machine (cpu flags avx2 -> amx).")):
        findings(before, after)
    assert record.read(after).machine != record.read(before).machine
    assert json.loads((after / "run.json").read_text())["host"]["cpu_flags"] == ["fma", "amx"]
