"""Golden values of update rules: p after each of three gradients, from p = 1, with a large epsilon.

`test_golden_updates.py` computes them from the formulas.
"""

from dataclasses import replace

import numpy as np

from steelyard_worker.case import Optimizer

GRADIENTS = (0.5, -0.2, 0.3)
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)
DECAYED = {"weight_decay": 0.1, "decay": ("p",)}


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


MOMENTUM = rule("sgd", momentum=0.9)
NESTEROV = rule("sgd", momentum=0.9, nesterov=True)
DECAYED_MOMENTUM = rule("sgd", momentum=0.9, **DECAYED)
ADAM = rule("adam")
DECAYED_ADAM = rule("adam", **DECAYED)
ADAMW = rule("adamw", **DECAYED)

# Rule -> values, at a constant rate. Each table is of one form.
CANONICAL = {
    MOMENTUM: (0.95, 0.925, 0.8725),
    NESTEROV: (0.905, 0.9025, 0.82525),
    DECAYED_MOMENTUM: (0.94, 0.8966, 0.818574),
    ADAM: (0.91666667, 0.88929542, 0.84679538),
    DECAYED_ADAM: (0.9142857, 0.8715277, 0.8161729),
    ADAMW: (0.90666667, 0.87022876, 0.81902643),
}
# Epsilon is added to the root of the second moment before its bias is corrected.
EPSILON_HAT = {
    ADAM: (0.98634729, 0.98132011, 0.97244366),
    DECAYED_ADAM: (0.98405221, 0.97540000, 0.96238762),
    ADAMW: (0.97634729, 0.96155663, 0.94306462),
}
# At the rates of RATES.
CANONICAL_AT_RATES = {
    MOMENTUM: (0.95, 0.945, 0.9345),
    DECAYED_MOMENTUM: (0.94, 0.93132, 0.9156454),
    ADAM: (0.9166667, 0.9111924, 0.9026924),
    ADAMW: (0.9066667, 0.8993791, 0.8890803),
}
EPSILON_HAT_AT_RATES = {
    ADAM: (0.9863473, 0.9853419, 0.9835666),
    ADAMW: (0.9763473, 0.9733892, 0.9696671),
}
# The momentum keeps each step's rate.
RATE_IN_MOMENTUM_AT_RATES = {
    MOMENTUM: (0.95, 0.909, 0.8661),
    DECAYED_MOMENTUM: (0.94, 0.88812, 0.8336518),
}


def compare(trajectory, table, limit=2e-6, **changes):
    """Compare `trajectory(rule)` with the values of a table, after these changes of its rules."""
    for spec, expected in table.items():
        changed = replace(spec, **changes)
        np.testing.assert_allclose(trajectory(changed), expected, rtol=limit, err_msg=str(changed))
