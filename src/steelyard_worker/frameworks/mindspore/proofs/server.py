"""MindSpore no longer has the method that puts parameters on server processes.

Exit code 7: it has none. 0: it is back.
"""

import sys

from mindspore import Parameter, Tensor, nn

STILL_SO, LEARNT = 7, 0

layer, parameter = nn.Dense(4, 4), Parameter(Tensor([1.0]), name="weight")
found = [each for each in (layer, parameter) if hasattr(each, "set_param_ps")]
print("has set_param_ps:", [type(each).__name__ for each in found])
sys.exit(LEARNT if found else STILL_SO)
