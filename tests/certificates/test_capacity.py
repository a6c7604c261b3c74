"""Processes of certificates run side by side as far as cores and memory allow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from types import SimpleNamespace

import pytest
import subjects
from planned import REFERENCES, filled

from steelyard.catalog import workloads
from steelyard.catalog.frameworks import WORKER
from steelyard.certificates import capacity as gates
from steelyard.certificates.capacity import Disk, Gate, needed_bytes, saved_bytes
from steelyard.certificates.plan import plan_certification, with_cores
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options
from steelyard_worker import tensors

GB = 10**9
SOON_S, LATE_S = 0.3, 10.0


def meet(gate: Gate, *needed: float) -> bool:
    """Return whether processes of these sizes are inside at the same time."""
    together = Barrier(len(needed))

    def process(size: float) -> bool:
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
    assert meet(Gate(2, 10 * GB, 2), *needed) is together


def test_a_process_knows_whether_another_was_inside() -> None:
    gate = Gate(2, 10 * GB, 2)
    with gate.room(4 * GB) as first:
        assert not first.shared
        with gate.room(4 * GB) as second:
            assert first.shared
            assert second.shared
        assert first.shared
    with gate.room(gate.whole) as alone:
        pass
    assert not alone.shared
    assert not meet(gate, gate.whole, 1)


def test_a_process_that_waits_begins_when_there_is_room_also_after_an_error() -> None:
    gate, first, begun, end = Gate(2, 10 * GB, 2), Event(), Event(), Event()

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


@pytest.mark.parametrize(
    ("workload", "batch", "precision", "peak_gb", "framework"),
    [
        ("resnet50:imagenet", 4, "float64", 5.0, "pytorch"),
        ("inceptionv3:imagenet", 4, "float64", 5.0, "pytorch"),
        ("gnmt:wmt16", 4, "float64", 21.0, "pytorch"),
        ("gnmt:wmt16", 4, "float32", 12.7, "pytorch"),
        ("vgg16:imagenet", 2, "float64", 21.6, "pytorch"),
        ("vgg16:imagenet", 2, "float32", 8.6, "pytorch"),
        ("bert:wikitext", 2, "float64", 13.9, "pytorch"),
        ("bert:wikitext", 2, "float32", 14.8, "mindspore"),
    ],
)
def test_processes_that_were_measured_fit_their_estimate(
    workload: str, batch: int, precision: str, peak_gb: float, framework: str
) -> None:
    """`peak_gb` is what a process held resident, libraries included, while it computed a certificate.

    Of PyTorch and TensorFlow it is that of the larger one.
    """
    plan = resolve.plan(Options(workloads=(workload,), frameworks=(framework,), batches=(batch,), synthetic=True))
    (variant,) = plan.variants
    case = replace(variant.case, settings=replace(variant.case.settings, precision=precision))
    network = workloads.described(Path(plan.workload_folders[case.workload]), case.sizes)
    libraries = 0.5 * GB
    estimate = needed_bytes(case, network)
    assert memory.needed_bytes(network, case.optimizer, case.batch) < estimate
    assert peak_gb * GB - libraries < estimate < 1.4 * peak_gb * GB


def test_an_inference_holds_fewer_copies_than_a_training() -> None:
    options = Options(workloads=("bert:wikitext",), frameworks=("pytorch",), batches=(2,), synthetic=True)
    training, inference = (
        resolve.plan(replace(options, tasks=(task,))).variants[0].case for task in ("training", "inference")
    )
    network = workloads.described(WORKER / "workloads" / "bert", training.sizes)
    usual = memory.needed_bytes(network, inference.optimizer, inference.batch)
    assert usual < needed_bytes(inference, network) < needed_bytes(training, network) / 2


@pytest.mark.parametrize(
    ("needed", "most", "cores", "share"),
    [
        (4 * GB, 2, 2, 1),
        (5 * GB, 2, 2, 1),  # exactly two of them
        (6 * GB, 2, 2, 2),
        (30 * GB, 2, 2, 2),
        (6 * GB, 4, 4, 4),
        (4 * GB, 4, 4, 2),
        (1, 4, 4, 1),
        (1, 4, 16, 4),  # four processes, on a machine with many cores
        (4 * GB, 4, 16, 8),
        (6 * GB, 4, 16, 16),
        (1, 1, 16, 16),
    ],
)
def test_processes_share_the_cores_of_as_many_as_there_is_room_for(
    needed: int, most: int, cores: int, share: int
) -> None:
    assert Gate(most, 10 * GB, cores).cores(needed) == share


def test_only_references_use_more_cores(tmp_path: Path) -> None:
    candidate = subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path)
    plan = plan_certification(candidate, REFERENCES, tmp_path / "references")
    for task in (
        *plan.reference_tasks,
        plan.long_sums_task,
        plan.sign_changes_task,
        *(pair[0] for pair in (*plan.small_tasks, *plan.draw_tasks)),
    ):
        assert (task.job.case.settings.threads, with_cores(task, 3).case.settings.threads) == (1, 3)
        assert with_cores(task, 1) == task.job
    for task in (plan.candidate_task, plan.float64_task, *(pair[1] for pair in (*plan.small_tasks, *plan.draw_tasks))):
        assert with_cores(task, 3) is task.job


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(gates.shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * GB))
    return Disk(tmp_path)


def test_a_group_waits_until_the_disk_has_room_for_what_it_saves(disk: Disk) -> None:
    begun, end = Event(), Event()

    def waiter() -> None:
        with disk.room(5 * GB):
            begun.set()

    def holder() -> None:
        with disk.room(6 * GB):
            end.wait(LATE_S)

    with ThreadPoolExecutor(3) as pool, disk.room(1 * GB) as left:
        assert left == 10 * GB
        with disk.room(2 * GB) as left:
            assert left == 9 * GB
        held = pool.submit(holder)
        pool.submit(waiter)
        assert not begun.wait(SOON_S)
        end.set()
        assert begun.wait(LATE_S)
        held.result(LATE_S)


def test_a_group_that_is_alone_learns_that_it_has_no_room(disk: Disk) -> None:
    with disk.room(30 * GB) as left:
        assert left == 10 * GB


def test_what_certificates_save_is_estimated_by_their_references_and_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    candidate = subjects.candidate("mxnet", "lstm-imdb", "tiny", tmp_path)
    plan = plan_certification(candidate, REFERENCES, tmp_path / "references")
    filled(plan, {})
    network = candidate.network

    def size(folder: str) -> int:
        return sum((each / tensors.BYTES).stat().st_size for each in Path(folder).glob("perturbation*"))

    tasks = (*plan.reference_tasks, plan.candidate_task)
    summary = size(plan.reference_tasks[1].job.folder)
    # The candidate of this test saves float64, and small tensors are padded.
    saved = sum(size(task.job.folder) for task in tasks) + summary - size(plan.candidate_task.job.folder) / 2
    assert 0.5 < saved_bytes([plan], network) / saved < 1.5
    scalars = sum(each.count for each in network.parameters)
    assert saved_bytes([plan], network) == 7 * scalars * (2 * 8 + 4 + 8)
    assert saved_bytes([plan, plan], network) == saved_bytes([plan], network)
    monkeypatch.setattr(gates, "has_reference", lambda _: True)
    assert saved_bytes([plan], network) == 7 * scalars * 4
