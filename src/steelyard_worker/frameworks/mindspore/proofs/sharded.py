"""MindSpore divides the state of an optimizer among ranks ("parallel optimizer") on Ascend only.

Exit code 7: still so. 0: an optimizer accepts it on CPU.
"""

import sys

import mindspore
from mindspore import nn

STILL_SO, LEARNT = 7, 0
REFUSAL = 'only supports "Ascend" in data parallel mode'

mindspore.set_device("CPU")
mindspore.set_auto_parallel_context(
    parallel_mode="data_parallel", device_num=2, global_rank=0, gradients_mean=True, enable_parallel_optimizer=True
)
try:
    # One of the few optimizers that have it at all.
    nn.AdamWeightDecay(nn.Dense(4, 4).trainable_params(), 0.1)
except RuntimeError as error:
    print(error)
    sys.exit(STILL_SO if REFUSAL in str(error) else 1)
sys.exit(LEARNT)
