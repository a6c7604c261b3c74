"""What the ONNX Runtime adapter relies on: settings that are read back."""

from dataclasses import replace

from checks.onnxruntime.shared import SETTINGS
from steelyard_worker.frameworks.onnxruntime import settings as process
from steelyard_worker.frameworks.onnxruntime.adapter import Adapter


def check_every_value_of_a_knob_is_read_back():
    for level in process.LEVELS:
        changed = replace(SETTINGS, knobs={"optimisation": level, "spinning": level != "none"})
        found = Adapter(changed).applied()
        assert (found["optimisation"], found["spinning"]) == (level, level != "none"), found


def check_threads_are_counted():
    for threads in (1, 2, 3):
        assert Adapter(replace(SETTINGS, threads=threads)).applied()["threads"] == threads


def check_a_thread_that_is_missing_is_noticed():
    asked = process.options(SETTINGS)
    asked.intra_op_num_threads = 1
    original, process.options = process.options, lambda _: asked
    try:
        assert process.read_back(SETTINGS)["threads"] == 1
    finally:
        process.options = original
