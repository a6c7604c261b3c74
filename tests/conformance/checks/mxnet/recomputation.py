"""What the MXNet adapter relies on: blocks that are computed twice to save memory."""

import json
import os
import subprocess
import sys


def check_gluon_ignores_the_setting_for_recomputation():
    """If this fails, MXNET_BACKWARD_DO_MIRROR has an effect, and the knob `recomputation` can have another value."""
    found = [operators_of_a_step(value) for value in ("0", "1")]
    assert found[0] == found[1], found
    assert found[0]["Activation"] == 3, found


def operators_of_a_step(mirror):
    """Return how often each operator runs in a step, in a process of its own with this value of the setting."""
    script = f"""
import os, json, tempfile
os.environ["MXNET_BACKWARD_DO_MIRROR"] = "{mirror}"
import mxnet as mx
net = mx.gluon.nn.HybridSequential()
for _ in range(3):
    net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.Activation("tanh"))
net.initialize()
net.hybridize(static_alloc=True, static_shape=True)
x = mx.nd.ones((2, 4))
net(x).wait_to_read()
mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=tempfile.mkdtemp() + "/profile.json")
mx.profiler.set_state("run")
with mx.autograd.record():
    y = net(x).sum()
y.backward()
mx.nd.waitall()
mx.profiler.set_state("stop")
rows = (line.split() for line in mx.profiler.dumps().splitlines())
print(json.dumps({{row[0]: int(row[1]) for row in rows if len(row) > 5 and row[1].isdigit()}}))
"""
    environ = os.environ | {"MXNET_EXEC_BULK_EXEC_TRAIN": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environ, check=True)
    return json.loads(done.stdout.splitlines()[-1])
