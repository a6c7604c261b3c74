"""What the MXNet adapter relies on: when work is done."""

import time

import mxnet as mx
from mxnet import nd


def check_a_call_returns_before_its_work_is_done_and_waitall_waits():
    a = nd.random.normal(shape=(1500, 1500))
    nd.waitall()

    def intervals():
        begin = time.perf_counter()
        product = a
        for _ in range(5):
            product = nd.dot(product, a)
        returned = time.perf_counter() - begin
        mx.nd.waitall()
        return returned, time.perf_counter() - begin

    # On a busy machine this thread may have to wait for a core, so one undisturbed attempt is enough.
    attempts = []
    for _ in range(5):
        returned, finished = intervals()
        if finished > 5 * returned:
            return
        attempts.append((returned, finished))
    raise AssertionError(attempts)
