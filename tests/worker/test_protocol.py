"""The protocol between the processes: jobs and events are transferred unchanged, damage and unknown versions are reported."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker import protocol
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Data, Job, Length, Schedule

NAMES = st.text(min_size=1, max_size=12)


def job(**changes):
    settings = Settings(mode="graph", threads=2, knobs={"layout": "channels-last"})
    case = Case(
        workload="line",
        preset="p",
        sizes={"batch": 4},
        specification="0",
        data={},
        framework="fake",
        settings=settings,
        optimizer=Optimizer("adam", 1e-3, decay=("a", "b")),
    )
    values = {
        "kind": "measure",
        "case": case,
        "workload_folder": "/w",
        "weights": "/weights",
        "data": Data("/synthetic"),
        "folder": "/f",
    }
    return Job(**{**values, **changes})


@given(
    name=NAMES,
    rate=st.floats(1e-9, 1),
    inputs=st.sampled_from([("pipeline",), ("cached",), ("pipeline", "cached")]),
)
def test_a_job_survives_its_line(name, rate, inputs):
    case = replace(job().case, workload=name, optimizer=Optimizer("sgd", rate))
    sent = job(case=case, schedule=Schedule(inputs=inputs, warmup=Length("steps", 3)))
    assert protocol.from_line(protocol.to_line(sent)) == sent


def test_unknown_keys_of_a_job_are_ignored():
    raw = json.loads(protocol.to_line(job()))
    raw["tomorrow"] = raw["case"]["settings"]["later"] = 1
    assert protocol.from_line(json.dumps(raw)) == job()


def test_a_job_of_another_version_is_refused():
    with pytest.raises(ValueError, match="protocol version 7; this version of steelyard reads 2"):
        protocol.from_line(protocol.to_line(job(version=7)))


def test_events_come_back_in_order(tmp_path):
    path = tmp_path / protocol.EVENTS
    writer = protocol.EventWriter(path, iter(range(10)).__next__)
    writer.write("hello", pid=1)
    writer.write("done")
    writer.close()
    assert [(e["event"], e["t_ns"]) for e in protocol.read_events(path)] == [("hello", 0), ("done", 1)]


def test_an_incomplete_last_line_is_ignored(tmp_path):
    path = tmp_path / protocol.EVENTS
    path.write_text('{"v": 2, "event": "hello", "t_ns": 0}\n{"v": 2, "eve')
    assert [e["event"] for e in protocol.read_events(path)] == ["hello"]


def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(tmp_path):
    path = tmp_path / protocol.EVENTS
    path.write_text('garbage\n{"v": 2, "event": "done", "t_ns": 0}\n')
    with pytest.raises(ValueError, match="line 1"):
        list(protocol.read_events(path))


def test_events_of_another_version_are_refused(tmp_path):
    path = tmp_path / protocol.EVENTS
    path.write_text('{"v": 9, "event": "hello", "t_ns": 0}\n')
    with pytest.raises(ValueError, match=r"unknown protocol version 9 \(expected 2\)"):
        list(protocol.read_events(path))


def test_bias_corrections_in_float32_are_rounded_once():
    rule = Optimizer("adam", 0.1, correction="float32")
    for t in range(1, 200):
        for beta, found in zip((rule.beta1, rule.beta2), rule.corrections(t), strict=True):
            assert found == float(np.float32(1) - np.float32(float(np.float32(beta)) ** t))
    assert rule.corrections(1)[1] != Optimizer("adam", 0.1).corrections(1)[1] == 1 - 0.999
