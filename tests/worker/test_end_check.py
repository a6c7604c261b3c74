"""What a process computes once more at its end; mistakes that begin after the certified steps, in the fake framework."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scripted_training import points, trained

from steelyard.results import end_check as judged
from steelyard.results import first_losses
from steelyard_worker import batches, certify, distances, end_check, placed
from steelyard_worker.frameworks.fake import adapter as fake
from steelyard_worker.memory import Peaks
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.trials import Trial

PROTOCOL = "sequential:pipeline"
ALONE = {"turns": 0}  # a process that takes turns stops itself


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("right")
    return trained(PROTOCOL, folder / "trial", points(folder), **ALONE)


@pytest.fixture(scope="module")
def certificate(right: Trial) -> dict[str, Any]:
    """The certificate of a process whose first steps are right: its losses, and the changes of its tensors in two steps."""
    assert right.end_check is not None
    losses = right.first_losses(5)
    updates = {name: list(values) for name, values in right.end_check.changes.items()}
    limits = dict.fromkeys(updates, 1e-5)
    return {"losses": losses, "loss_limits": [1e-6] * 5, "updates": updates, "update_limits": limits}


def faulty(folder: Path, fault: str) -> Trial:
    return trained(PROTOCOL, folder / "trial", points(folder), fault=fault, **ALONE)


def test_the_steps_at_the_end_have_the_losses_of_the_first_ones(right: Trial) -> None:
    assert right.end_check is not None
    assert list(right.end_check.losses) == right.first_losses(5)
    assert len(set(right.end_check.losses)) == 5
    assert {name: len(values) for name, values in right.end_check.changes.items()} == {
        "head.weight": 16,
        "head.bias": 3,
    }
    assert all(any(values) for values in right.end_check.changes.values())
    assert (right.end_check.unequal, right.end_check.not_checked) == ("", "")


def test_what_is_recorded_of_the_steps_that_were_timed_has_no_part_of_the_end(right: Trial) -> None:
    steps = sum(block.steps for block in right.blocks)
    assert (right.folder / "losses.f32").stat().st_size == 4 * steps
    assert (right.folder / "samples.i64").stat().st_size == 8 * steps
    assert "end check" in right.memory or not right.memory


def test_the_changes_are_those_of_two_steps(right: Trial, tmp_path: Path) -> None:
    """Computed here by hand: softmax regression from zero weights, by gradient descent."""
    source = batches.open_source(points(tmp_path))
    weight, bias = np.zeros((3, 8)), np.zeros(3)
    for step in range(2):
        batch = source.batch(step)
        logits = batch["point"] @ weight.T + bias
        chance = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        slope = (chance - np.eye(3)[batch["label"]]) / len(logits)
        weight, bias = weight - 0.1 * slope.T @ batch["point"], bias - 0.1 * slope.sum(0)
    assert right.end_check is not None
    assert right.end_check.changes["head.bias"] == pytest.approx(bias.tolist(), rel=1e-5)
    assert right.end_check.changes["head.weight"] == pytest.approx(distances.sampled(weight, 16).tolist(), rel=1e-5)


def test_a_right_process_deviates_in_nothing(right: Trial, certificate: dict[str, Any]) -> None:
    assert judged.not_checked(right, certificate) == ""
    assert judged.batches_not_checked(right) == ""
    assert judged.deviation(right, certificate) == ""
    (handed,) = right.batch_checks
    assert (handed.input, handed.compared, handed.differs) == ("pipeline", 3, 0)
    assert handed.fetched == sum(block.steps for block in right.blocks if block.input == "pipeline") > 20


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("frozen", "At the end of the process, the loss of certified step 2 is "),
        ("coarse", "At the end of the process, the loss of certified step 2 is "),
        ("repeat", "Batch "),
    ],
)
def test_a_mistake_after_the_certified_steps_is_noticed(
    tmp_path: Path, certificate: dict[str, Any], fault: str, sentence: str
) -> None:
    """Its first losses are the certified ones, so that it passed before."""
    found = faulty(tmp_path, fault)
    assert first_losses.deviation(found, certificate) == ""
    assert judged.deviation(found, certificate).startswith(sentence)


def test_an_update_that_no_loss_shows_is_noticed_by_the_first_tensor_that_it_changes(
    right: Trial, certificate: dict[str, Any]
) -> None:
    assert right.end_check is not None
    changes = {name: tuple(1.5 * each for each in values) for name, values in right.end_check.changes.items()}
    found = replace(right, end_check=replace(right.end_check, changes=changes))
    sentence = judged.deviation(found, certificate)
    assert sentence.startswith(
        "At the end of the process, certified steps change the tensor 'head.weight' by something else"
    )
    assert sentence.endswith("(within 3e-05). The process did not compute to its end what was certified.")
    assert judged.deviation(found, certificate | {"updates": {}}) == ""


def test_a_tensor_that_is_no_longer_trained_is_noticed_however_much_the_certificate_allows(
    right: Trial, certificate: dict[str, Any]
) -> None:
    assert right.end_check is not None
    chaotic = certificate | {"update_limits": dict.fromkeys(certificate["updates"], 0.6)}
    frozen = {**right.end_check.changes, "head.weight": (0.0,) * 16}
    assert judged.deviation(right, chaotic) == ""
    assert "change the tensor 'head.weight'" in judged.deviation(
        replace(right, end_check=replace(right.end_check, changes=frozen)), chaotic
    )


def test_signs_of_a_few_elements_may_differ() -> None:
    exact = [(-1.0) ** number for number in range(16)]
    few = tuple(exact[:11] + [-each for each in exact[11:]])
    assert judged.distance(few, exact) == 0
    assert judged.distance(tuple(-each for each in exact), exact) == 2
    assert judged.distance((0.0,) * 16, exact) == 1
    assert judged.distance((), []) == judged.distance((1.0,), [0.0]) == 0
    assert math.isnan(judged.distance((1.0,), exact))


def test_ranks_that_have_drifted_apart_are_noticed(right: Trial, certificate: dict[str, Any]) -> None:
    assert right.end_check is not None
    apart = replace(right, end_check=replace(right.end_check, unequal="head.bias"))
    assert "change the tensor 'head.bias' differently in its ranks." in judged.deviation(apart, certificate)


def test_the_first_tensor_that_ranks_have_differently_is_named_and_parts_are_joined() -> None:
    one, two = np.ones(2), np.zeros(2)
    found, unequal = end_check._joined([{"a": one, "b": one}, {"a": one, "b": two, "c": two}], ["a", "b", "c", "d"])
    assert list(found) == ["a", "b", "c"]
    assert unequal == "b"
    assert end_check._joined([{"a": one}, {"c": two}], ["a", "c"])[1] == ""


def test_a_trainer_that_cannot_be_set_back_is_not_checked_and_says_so(
    tmp_path: Path, certificate: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fake.Trainer, "restart")
    found = trained(PROTOCOL, tmp_path / "trial", points(tmp_path), **ALONE)
    assert judged.not_checked(found, certificate) == "the trainer cannot be set back"
    assert judged.deviation(found, certificate) == ""


def test_a_trainer_may_refuse_to_be_set_back_as_unsupported_only(right: Trial) -> None:
    class Refusing:
        kind = "unsupported"

        def restart(self, weights: Any) -> None:
            raise Refusal(self.kind, "Servers have the weights.")

    refusing: Any = Refusing()
    reason = end_check.set_back(right.job, refusing, Ranks())
    assert reason == "the trainer cannot be set back (Servers have the weights)"
    refusing.kind = "crash"
    with pytest.raises(Refusal):
        end_check.set_back(right.job, refusing, Ranks())


def test_a_record_without_these_events_is_not_checked(right: Trial, certificate: dict[str, Any]) -> None:
    old = replace(right, end_check=None, batch_checks=())
    assert judged.not_checked(old, certificate) == "nothing was computed once more at the end"
    assert judged.batches_not_checked(old) == "the process did not look"
    assert judged.deviation(old, certificate) == ""


@pytest.mark.parametrize(
    ("step_s", "elapsed_s", "steps"),
    [
        (0.1, 100, 5),
        (0.1, 25, 5),
        (0.1, 20, 4),
        (0.1, 15.5, 3),
        (0.1, 1, 2),
        (100, 1, 2),
        (0, 1, 5),
        (0.1, math.inf, 5),
    ],
)
def test_the_steps_at_the_end_take_at_most_two_hundredths_of_the_time_but_there_are_two(
    step_s: float, elapsed_s: float, steps: int
) -> None:
    assert end_check.affordable_steps(5, step_s, elapsed_s) == steps
    assert end_check.affordable_steps(1, step_s, elapsed_s) == 1


@pytest.mark.parametrize(
    ("number", "step_s", "elapsed_s", "left"),
    [
        (1, 4.0, 60.0, False),
        (2, 4.0, 60.0, True),
        (0, 4.0, 60.0, False),
        (2, 0.01, 10.0, False),
        (3, 0.101, 10.0, True),
    ],
)
def test_long_steps_are_done_again_in_the_first_round_only(
    number: int, step_s: float, elapsed_s: float, left: bool
) -> None:
    reason = end_check.left_to_the_first_round(number, 2, step_s, elapsed_s)
    assert bool(reason) == left
    assert not left or "more than 2 % of the time" in reason


def test_whole_epochs_end_with_the_certified_steps_too(tmp_path: Path, certificate: dict[str, Any]) -> None:
    found = trained("epochs:3", tmp_path / "trial", points(tmp_path))
    assert judged.not_checked(found, certificate) == ""
    assert judged.deviation(found, certificate) == ""
    assert [(each.fetched, each.differs) for each in found.batch_checks] == [(12, 0)]
    wrong = trained("epochs:3", tmp_path / "wrong", points(tmp_path / "wrong-data"), fault="repeat")
    assert "Batch 13 of the input pipeline is not the one" in judged.deviation(wrong, certificate)


# Batches


class Native:
    """An array of some framework."""

    def __init__(self, array: Any, method: str = "asnumpy") -> None:
        setattr(self, method, lambda: np.asarray(array))
        self.waited = 0

    def wait_to_read(self) -> None:
        self.waited += 1

    def detach(self) -> Any:
        """MXNet's arrays have this method too, but none that copies to the host as PyTorch's do."""
        return self


class WithCpu:
    """An array as TensorFlow's: it has `cpu`, but no `detach`."""

    def cpu(self) -> WithCpu:
        return self

    def numpy(self) -> Any:
        return np.array([4])


def test_an_array_that_only_has_a_copy_on_the_host_is_read() -> None:
    found = placed.arrays([WithCpu()])
    assert found is not None
    assert [each.tolist() for each in found] == [[4]]


def test_batches_of_any_framework_are_read_in_their_order() -> None:
    found = placed.arrays({"a": Native([1]), "b": (Native([2], "numpy"), [np.array([3])])})
    assert found is not None
    assert [each.tolist() for each in found] == [[1], [2], [3]]
    assert placed.arrays({"a": object()}) is None
    assert placed.arrays([None]) is None


def test_batches_are_alike_where_all_values_are() -> None:
    one = [np.array([1.0, math.nan]), np.array([[1, 2]])]
    assert placed.alike(one, [each.copy() for each in one])
    assert placed.alike([np.array([1], np.int32)], [np.array([1], np.int64)])
    assert not placed.alike(one, [one[0], np.array([[1, 3]])])
    assert not placed.alike(one, [one[0], np.array([1, 2])])
    assert not placed.alike(one, one[:1])


def test_a_batch_is_waited_for_part_by_part() -> None:
    parts = [Native([1]), Native([2])]
    placed.wait({"a": parts[0], "b": (parts[1],), "c": np.ones(1)})
    assert [each.waited for each in parts] == [1, 1]


class Placing:
    def put(self, batch: Any) -> Any:
        return batch


def test_batches_that_cannot_be_compared_say_why(tmp_path: Path) -> None:
    source = batches.open_source(points(tmp_path))
    driven = Placing()
    driven.run = None  # type: ignore[attr-defined]
    assert end_check.compared_batches(driven, iter([]), source, 0).not_checked == end_check.OWN_LOOP
    for odd in (object(), ({"point": 1},)):
        found = end_check.compared_batches(Placing(), itertools.repeat(odd), source, 0)
        assert (found.not_checked, found.differs) == (end_check.UNREADABLE, 0)


@pytest.mark.parametrize("ahead", [0, 1, -1])
def test_a_pipeline_that_left_out_or_repeated_one_batch_is_noticed_by_the_next_ones(tmp_path: Path, ahead: int) -> None:
    source = batches.open_source(points(tmp_path))
    feed = (source.batch(step + ahead) for step in itertools.count(57))
    found = end_check.compared_batches(Placing(), feed, source, 57)
    assert found == (end_check.Compared(1, 58) if ahead else end_check.Compared(3))


def test_synthetic_batches_take_turns_with_the_same_samples_in_another_order() -> None:
    batch = {"x": np.arange(8).reshape(4, 2), "y": np.arange(4)}
    first, second, third = batches.rolled(batch)
    assert first["y"].tolist() == [0, 1, 2, 3]
    assert second["y"].tolist() == [3, 0, 1, 2]
    assert second["x"].tolist() == [[6, 7], [0, 1], [2, 3], [4, 5]]
    assert third["y"].tolist() == [2, 3, 0, 1]
    assert len(batches.rolled({"x": np.ones((2, 3))})) == 2
    assert len(batches.rolled({"x": np.ones((1, 3))})) == 1


def test_a_certificate_without_data_trains_on_the_batches_of_a_trial_in_their_turns(tmp_path: Path) -> None:
    from steelyard_worker import tensors
    from steelyard_worker.protocol import Data

    whole = {"point": np.arange(32.0).reshape(16, 2)}
    tensors.write(tmp_path / "synthetic", whole)
    job: Any = type("Job", (), {"data": Data(str(tmp_path / "synthetic")), "case": type("Case", (), {"batch": 16})})
    certified = list(certify.certified_batches(job, 5))
    taken = itertools.islice(batches.Turns(batches.synthetic_batches(job.data)), 5)
    for one, other in zip(certified, taken, strict=True):
        assert np.array_equal(one["point"], other["point"])
    assert not np.array_equal(certified[0]["point"], certified[1]["point"])
    assert np.array_equal(certified[0]["point"], certified[3]["point"])


def test_the_peaks_of_the_end_are_no_part_of_those_of_the_process() -> None:
    peaks = Peaks(limit_bytes=10)
    found = iter([5, 50, 7])
    peaks._resident._read = lambda: next(found)
    peaks._resident._restart = lambda: True
    peaks.end("counted")
    peaks.end_aside("end check")
    assert peaks.resident_bytes == 5
    assert peaks.phases["end check"] == {"resident_bytes": 50, "device_bytes": None}
    peaks.end("counted")
    assert peaks.resident_bytes == 7
