"""One process of MindSpore uses one device, which is chosen once: a second one is refused.

Exit code 7: it still is. 0: a process may use two devices.
"""

import sys

import mindspore

STILL_SO, LEARNT = 7, 0
REFUSAL = "can not be modified"

mindspore.set_device("CPU", 0)
mindspore.set_device("CPU", 0)  # the same again is no second device, and is accepted
try:
    mindspore.set_device("CPU", 1)
except RuntimeError as error:
    print(error)
    sys.exit(STILL_SO if REFUSAL in str(error) else 1)
sys.exit(LEARNT)
