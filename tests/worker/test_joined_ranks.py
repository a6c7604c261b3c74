"""What the ranks of a trial share, tell each other, and join."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard_worker import ranks
from steelyard_worker.batches import Source, Split
from steelyard_worker.protocol import Refusal
from steelyard_worker.ranks import Lost, Ranks
from steelyard_worker.strategy import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

COPIES = Spread("processes", "", "ranks")
PARTS_OF_NETWORK = Spread("pipeline", "", "ranks", shares="network")
DEVICES = Spread("devices", "")


def together(count: int, work: Callable[[Ranks], Any], spread: Spread = COPIES) -> list[Any]:
    """Run the work of some ranks at the same time; return what each returned, or the exception that it raised."""
    with socket.socket() as free:
        free.bind((ranks.LOOPBACK, 0))
        port = free.getsockname()[1]
    every = [Ranks(f"copies:{count}", spread, rank, (port,), key=b"key") for rank in range(count)]

    def run(own: Ranks) -> Any:
        own.meet({"library": "1.0"})
        return work(own)

    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(run, own) for own in every]
        return [each.exception() or each.result() for each in waiting]


@pytest.mark.parametrize("spread", [None, DEVICES])
def test_a_single_process_has_everything_and_waits_for_nobody(spread: Spread | None) -> None:
    own = Ranks("mirrored:2" if spread else "single", spread)
    batch = {"x": np.arange(6)}
    assert own.count == 1 and own.leads
    assert own.share(batch) is batch
    assert own.sizes({"batch": 6}) == {"batch": 6}
    assert own.gathered("value") == ["value"]
    own.meet({})
    own.barrier()
    own.announce("nothing")


def test_ranks_divide_a_batch_in_order() -> None:
    shares = [Ranks("copies:3", COPIES, rank).share({"x": np.arange(6)})["x"].tolist() for rank in range(3)]
    assert shares == [[0, 1], [2, 3], [4, 5]]
    assert Ranks("copies:3", COPIES, 1).sizes({"batch": 6, "width": 5}) == {"batch": 2, "width": 5}


def test_ranks_that_share_the_network_get_whole_batches() -> None:
    own = Ranks("cut:2", PARTS_OF_NETWORK, 1)
    batch = {"x": np.arange(4)}
    assert own.share(batch) is batch
    assert own.sizes({"batch": 4}) == {"batch": 4}


def test_a_source_of_shares_has_the_same_steps_and_is_cut_as_the_whole_batch() -> None:
    arrays = {"text": np.arange(24).reshape(4, 6), "length": np.array([1, 2, 3, 4])}
    split = Split(arrays, cut={"text": ((0, "length"),)})
    source = Source(split, np.array([[0, 3], [2, 1]], np.int32))
    own = Ranks("copies:2", COPIES, 0).source(source)
    assert own.steps_per_epoch == source.steps_per_epoch == 2
    assert own.batch(0)["text"].tolist() == [[0, 1, 2, 3]]  # four long, as the other rank's sample is
    assert Ranks("copies:2", COPIES, 1).source(source).batch(1)["length"].tolist() == [2]


def test_orders_reach_every_rank_and_end() -> None:
    def work(own: Ranks) -> list[Any]:
        if not own.leads:
            return list(own.orders())
        own.announce(("steps", 5))
        own.announce(("steps", 7))
        own.end()
        return []

    assert together(3, work)[1:] == [[("steps", 5), ("steps", 7)]] * 2


def test_nobody_passes_a_barrier_before_all_have_come() -> None:
    passed, last = Event(), 2

    def work(own: Ranks) -> bool:
        """Return whether somebody has passed before this rank came; the last one gives the others time for it."""
        early = own.rank == last and passed.wait(0.3)
        own.barrier()
        passed.set()
        return early

    assert together(last + 1, work) == [False, False, False]


def test_values_are_gathered_by_rank_on_the_first() -> None:
    assert together(3, lambda own: own.gathered(own.rank)) == [[0, 1, 2], [1], [2]]


def test_losses_are_the_mean_of_all_shares() -> None:
    def work(own: Ranks) -> list[float]:
        return own.joined_losses(np.array([1.0, 2.0], np.float32) * (own.rank + 1)).tolist()

    assert together(2, work) == [[1.5, 3.0], [2.0, 4.0]]


def test_a_rank_without_losses_is_left_out_of_the_mean() -> None:
    def work(own: Ranks) -> list[float]:
        return own.joined_losses(np.array([4.0] if own.rank else [], np.float32)).tolist()

    assert together(2, work, PARTS_OF_NETWORK)[0] == [4.0]


def test_a_lost_rank_is_noticed() -> None:
    def work(own: Ranks) -> Any:
        if own.leads:
            own.barrier()
        else:
            own._others[0].close()  # what the system does when a process dies
        return None

    assert isinstance(together(2, work)[0], Lost)


def test_ranks_with_other_software_do_not_start() -> None:
    with socket.socket() as free:
        free.bind((ranks.LOOPBACK, 0))
        port = free.getsockname()[1]
    every = [Ranks("copies:2", COPIES, rank, (port,), key=b"key") for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(every[0].meet, {"library": "1.0"})
        pool.submit(every[1].meet, {"library": "2.0"})
        with pytest.raises(Refusal, match=r"Rank 1 computes with library 2\.0, and rank 0 with 1\.0"):
            first.result()


def test_tensors_of_shares_are_joined() -> None:
    found = [
        {
            "output/y": np.array([1, 2]),
            "loss": np.array(1.0),
            "grad/w": np.array([5.0]),
            "adversarial/loss1": np.array(2.0),
        },
        {
            "output/y": np.array([3, 4]),
            "loss": np.array(3.0),
            "grad/w": np.array([5.0]),
            "adversarial/loss1": np.array(4.0),
        },
    ]
    joined = ranks.join_tensors(found, shares_batch=True)
    assert {name: array.tolist() for name, array in joined.items()} == {
        "output/y": [1, 2, 3, 4],
        "loss": 2.0,
        "grad/w": [5.0],
        "adversarial/loss1": 3.0,
    }


@pytest.mark.parametrize("name", ["grad/w", "after5/w", "adversarial/after1/w"])
def test_ranks_that_end_with_other_tensors_are_refused(name: str) -> None:
    found = [{name: np.array([1.0, 2.0])}, {name: np.array([1.0, np.nextafter(2.0, 3)])}]
    with pytest.raises(Refusal, match=f"Rank 1 has other values of {name} than rank 0") as refused:
        ranks.join_tensors(found, shares_batch=True)
    assert refused.value.kind == "ranks"


def test_parts_of_a_network_are_put_together() -> None:
    found = [
        {"loss1": np.array(np.nan), "after1/a": np.array([1.0])},
        {"loss1": np.array(2.0), "after1/b": np.array([2.0]), "output/y": np.array([7])},
    ]
    joined = ranks.join_tensors(found, shares_batch=False)
    assert {name: array.tolist() for name, array in joined.items()} == {
        "loss1": 2.0,
        "after1/a": [1.0],
        "after1/b": [2.0],
        "output/y": [7],
    }


def test_a_process_learns_its_rank_from_the_variable_of_its_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_RANK", "1")
    monkeypatch.setenv(ranks.PORTS, "4000,4001")
    monkeypatch.setenv(ranks.KEY, "secret")
    own = ranks.of_environment("ddp:2", Spread("processes", "", "launch -n {ranks}", "OWN_RANK"))
    assert (own.rank, own.count, own.ports, own.key) == (1, 2, (4000, 4001), b"secret")


def test_a_launcher_that_tells_no_rank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OWN_RANK", raising=False)
    with pytest.raises(Refusal, match=r"did not tell the rank of a process \(OWN_RANK\)"):
        ranks.of_environment("ddp:2", Spread("processes", "", "launch", "OWN_RANK"))
