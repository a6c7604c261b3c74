"""MindSpore cuts a network into stages in its semi-automatic parallel mode only, which refuses CPUs.

Exit code 7: it still does. 0: it has learnt to.
"""

import sys

import mindspore
import numpy as np
from mindspore import Tensor, nn

STILL_SO, LEARNT = 7, 0
REFUSAL = "currently only support Ascend/GPU backend"


class Halves(nn.Cell):
    """Two layers, each in a stage of its own, and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.loss = nn.Dense(4, 4), nn.Dense(4, 4), nn.MSELoss()
        self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.second(self.first(x)), y)


mindspore.set_context(mode=mindspore.GRAPH_MODE)
mindspore.set_device("CPU")
# The refusal comes when the graph is compiled, so one process suffices to see it.
mindspore.set_auto_parallel_context(
    parallel_mode="semi_auto_parallel", device_num=2, global_rank=0, pipeline_stages=2, gradients_mean=True
)
network = nn.PipelineCell(Halves(), 2)
step = nn.TrainOneStepCell(network, nn.Momentum(network.trainable_params(), 0.1, 0.9)).set_train()
x = Tensor(np.ones((4, 4), np.float32))
try:
    step.compile(x, x)
except RuntimeError as error:
    print(error)
    sys.exit(STILL_SO if REFUSAL in str(error) else 1)
sys.exit(LEARNT)
