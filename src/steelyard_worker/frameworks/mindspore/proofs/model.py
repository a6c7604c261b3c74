"""MindSpore passes tensors from one process to another with Send and Receive, which have no kernels for CPUs.

Exit code 7: they still have none. 0: a graph with Send is compiled.
"""

import sys

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

STILL_SO, LEARNT = 7, 0
REFUSAL = "Unsupported op [Send] on CPU"


class FirstHalf(nn.Cell):
    """A layer whose output another process is to get."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.send = nn.Dense(4, 4), ops.Send(sr_tag=0, dest_rank=1)

    def construct(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return ops.depend(y, self.send(y))


mindspore.set_context(mode=mindspore.GRAPH_MODE)
mindspore.set_device("CPU")
try:
    FirstHalf().compile(Tensor(np.ones((4, 4), np.float32)))
except RuntimeError as error:
    print(error)
    sys.exit(STILL_SO if REFUSAL in str(error) else 1)
sys.exit(LEARNT)
