"""Ranks that exchange gradients through MXNet's parameter servers: addresses, the store that they share, and their trainer."""

from __future__ import annotations

import ctypes
import os
from threading import Thread
from typing import TYPE_CHECKING, Any

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from mxnet.kvstore import KVStore

    from steelyard_worker.ranks import Ranks

# Kinds whose ranks exchange through servers, and the type of MXNet's store that each uses.
STORES = {"server": "dist_sync", "asynchronous": "dist_async"}
WORKER, SERVER = "worker", "server"
# All ranks and servers import MXNet at the same time; the slowest may need this long until all have met.
LONGEST_MEETING_S = 300.0


def export(role: str, ranks: Ranks) -> None:
    """Tell MXNet's communication library who this process is and where the scheduler listens."""
    assert ranks.spread is not None
    os.environ |= {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": ranks.host,
        "DMLC_PS_ROOT_PORT": str(ranks.ports[1]),
        "DMLC_NUM_WORKER": str(ranks.parts),
        "DMLC_NUM_SERVER": str(ranks.spread.roles.count(SERVER)),
        # The address on which this process is reached; otherwise the first network card that is not the loopback.
        "DMLC_NODE_HOST": ranks.address,
    }


def join(ranks: Ranks) -> KVStore:
    """Return the store that all ranks share, once all have joined; Refusal: not all have joined in time."""
    import mxnet as mx
    from mxnet.base import _LIB, check_call

    assert ranks.spread is not None
    kind = STORES[ranks.spread.kind]
    store: KVStore = _within(LONGEST_MEETING_S, lambda: mx.kv.create(kind))
    # Otherwise a rank that has failed waits at its end for ranks that wait for it.
    check_call(_LIB.MXKVStoreSetBarrierBeforeExit(store.handle, ctypes.c_int(0)))
    return store


def _within(longest_s: float, call: Callable[[], Any]) -> Any:
    """Return what a call returns; MXNet itself waits for other processes without end."""
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(longest_s)
    if not found:
        raise Refusal("ranks", f"The ranks and servers of MXNet have not all met within {longest_s:.0f} s.")
    return found[0]
