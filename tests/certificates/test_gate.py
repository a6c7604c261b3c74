"""Processes of certificates run side by side as far as cores and memory allow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event

import pytest

from steelyard.catalog import workloads
from steelyard.certificates.gate import Gate, needed_bytes
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options

GB = 10**9
SOON_S, LATE_S = 0.3, 10.0


def meet(gate: Gate, *needed: int) -> bool:
    """Return whether processes of these sizes are inside at the same time."""
    together = Barrier(len(needed))

    def process(size: int) -> bool:
        with gate.room(size):
            try:
                together.wait(SOON_S)
            except BrokenBarrierError:
                return False
            return True

    with ThreadPoolExecutor(len(needed)) as pool:
        return all(pool.map(process, needed))


@pytest.mark.parametrize(
    ("needed", "together"),
    [
        ((4 * GB, 4 * GB), True),
        ((5 * GB, 5 * GB), True),  # exactly all of it
        ((5 * GB, 6 * GB), False),
        ((1 * GB, 1 * GB, 1 * GB), False),  # a third process, for two cores
        ((30 * GB,), True),  # it may be less in truth, and alone it disturbs nobody
        ((30 * GB, 1 * GB), False),
    ],
)
def test_processes_run_together_that_fit_into_the_memory(needed: tuple[int, ...], together: bool) -> None:
    assert meet(Gate(2, 10 * GB), *needed) is together


def test_a_process_that_waits_begins_when_there_is_room_also_after_an_error() -> None:
    gate, first, begun, end = Gate(2, 10 * GB), Event(), Event(), Event()

    def holder() -> None:
        with gate.room(8 * GB):
            first.set()
            end.wait(LATE_S)
            raise OSError

    def waiter() -> None:
        with gate.room(8 * GB):
            begun.set()

    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(holder)
        assert first.wait(LATE_S)
        pool.submit(waiter)
        assert not begun.wait(SOON_S)
        end.set()
        assert begun.wait(LATE_S)
        assert isinstance(held.exception(), OSError)


def test_two_references_of_bert_do_not_fit_into_24_gb_together() -> None:
    """They used 13.9 GB in PyTorch and 16.8 GB in TensorFlow when the system ended them."""
    plan = resolve.plan(Options(workloads=("bert:cn-wiki",), frameworks=("pytorch",), batches=(2,), synthetic=True))
    (variant,) = plan.variants
    case = replace(variant.case, settings=replace(variant.case.settings, precision="float64"))
    network = workloads.described(Path(plan.workload_folders["bert"]), case.sizes)
    training = memory.needed_bytes(network, case.optimizer, case.batch)
    assert training < needed_bytes(variant.case, network) < needed_bytes(case, network)
    assert 16.8 * GB < needed_bytes(case, network) < 24 * GB
