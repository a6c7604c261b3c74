"""MXNet's own parameter server and its scheduler, which tells ranks and servers of each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from steelyard_worker.frameworks.mxnet import distributed

if TYPE_CHECKING:
    from steelyard_worker.ranks import Ranks


def serve(role: str, ranks: Ranks) -> None:
    """Be the server or the scheduler until the ranks have finished."""
    # With such a role, MXNet starts to serve while it is imported, and update rules that a server is sent could not be loaded.
    os.environ.pop("DMLC_ROLE", None)
    from mxnet.kvstore import kvstore_server

    from steelyard_worker.frameworks.mxnet import served  # noqa: F401 - ranks send rules that are defined there

    distributed.export(role, ranks)
    kvstore_server._init_kvstore_server_module()  # noqa: SLF001 - what an import of MXNet calls
