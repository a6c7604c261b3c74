"""Can two processes add their gradients by MXNet alone, without a parameter server? Exit code 7: no; 0: yes.

Two ranks try the types of store that MXNet's documentation names. The same ranks with a server come first, which shows that the
test works.
"""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

WITHOUT, BROKEN = 7, 1
LONGEST_S = 40.0
# nccl is for several GPUs of one process. MXNet 1.9.1 does not contain horovod and byteps, and makes a store of one process for a
# name that it does not know. dist_async and dist_device_sync have the same servers as dist_sync.
LOCAL_TYPES = ("local", "device", "nccl", "horovod", "byteps")
SERVED_TYPE = "dist_sync"


def main():
    """Run the ranks with a server, then without; return the exit code."""
    began = time.monotonic()
    if not exchanged((SERVED_TYPE,), 1, LONGEST_S):
        print("the ranks do not exchange anything with a server either, so this proves nothing")
        return BROKEN
    # Ranks that wait for a server get half as much time again as they had needed with one.
    longest_s = 1.5 * (time.monotonic() - began)
    tried = (LOCAL_TYPES, (SERVED_TYPE,))
    with ThreadPoolExecutor() as together:
        worked = together.map(lambda kinds: exchanged(kinds, 0, longest_s), tried)
        found = [kinds for kinds, works in zip(tried, worked, strict=True) if works]
    print("stores that add the gradients of two processes without a server:", found or "none")
    return 0 if found else WITHOUT


def exchanged(kinds, servers, longest_s):
    """Return whether both of two ranks get the sum of what they have sent, by any of these types of stores."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    addresses = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": "127.0.0.1",
        "DMLC_NUM_WORKER": "2",
        "DMLC_NUM_SERVER": str(servers),
    }
    roles = ["worker", "worker"]
    if SERVED_TYPE in kinds:
        roles += ["scheduler"] + ["server"] * servers
    started = [
        subprocess.Popen(
            [sys.executable, __file__, *kinds],
            env=os.environ | addresses | {"DMLC_ROLE": role},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for role in roles
    ]
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline and any(rank.poll() is None for rank in started[:2]):
        time.sleep(0.1)
    summed = [rank.poll() == 0 for rank in started[:2]]
    for each in started:
        each.kill()
        each.wait()
    return all(summed)


def sums(kind):
    """Send a gradient; return whether the sum of both ranks came back."""
    import mxnet as mx

    try:
        store, gradient = mx.kv.create(kind), mx.nd.ones(3)
    except mx.MXNetError as error:  # this build has no such store
        print(kind, error)
        return False
    store.init(0, gradient.zeros_like())
    store.pushpull(0, gradient, out=gradient)
    return gradient.asnumpy().tolist() == [2, 2, 2]


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(0 if any(sums(kind) for kind in sys.argv[1:]) else WITHOUT)
    sys.exit(main())
