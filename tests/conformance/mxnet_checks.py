"""What the MXNet adapter relies on; run by the interpreter of its environment."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

import steelyard_worker
from steelyard_worker import dropout, network
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.mxnet import layers, optimizers, recurrent
from steelyard_worker.frameworks.mxnet import settings as process
from steelyard_worker.frameworks.mxnet.adapter import Adapter
from steelyard_worker.frameworks.mxnet.running_statistics import RunningStatistics

HERE = Path(__file__).parent
WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
KNOBS = {"lstm": "fused", "onednn": True, "embedding": "dense", "dropout": "off", "shapes": "static"}
KNOBS |= {"recomputation": "none", "micro_batches": 4}
GRADIENTS = (0.5, -0.2, 0.3)
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)


def parameter(values=(1.0,)):
    """Return an initialised parameter."""
    found = gluon.Parameter("p", shape=(len(values),))
    found.initialize()
    found.set_data(nd.array(values))
    return found


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = parameter()
    rule = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for gradient in GRADIENTS:
        with autograd.record():
            loss = (p.data() * gradient).sum()
        loss.backward()
        rule.step(1)
        path.append(p.data().asscalar())
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_each_step_has_its_own_learning_rate():
    """MXNet's SGD keeps each step's rate in its momentum: the form that `scheduled_form` in framework.toml declares."""
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    kept = rule("sgd", momentum=0.9)
    golden = [
        (kept, (0.95, 0.909, 0.8661)),
        (replace(kept, implementation="reference", form="rate-in-momentum"), (0.95, 0.909, 0.8661)),
        (replace(kept, implementation="reference"), (0.95, 0.945, 0.9345)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.88812, 0.8336518)),
        (rule("adam"), (0.9863473, 0.9853419, 0.9835666)),
        (rule("adam", implementation="reference"), (0.9166667, 0.9111924, 0.9026924)),
        (rule("adamw", **decayed), (0.9763473, 0.9733892, 0.9696671)),
    ]
    for spec, expected in golden:
        np.testing.assert_allclose(trajectory(spec, RATES), expected, rtol=3e-6, err_msg=str(spec))
    constant = optimizers.update_rule(kept, {"p": parameter()})
    assert constant._optimizer.lr_scheduler is None


def check_clipping_is_exact_for_large_tensors():
    """The reason why the norm is summed in parts. If the last line fails, Gluon's own function is exact enough again."""
    named = {name: gluon.Parameter(name, shape=shape) for name, shape in (("large", (8192, 1024)), ("small", (3,)))}
    for each in named.values():
        each.initialize(mx.init.Zero())
    rule = optimizers.update_rule(Optimizer("sgd", 1.0, clip=1.0), named)
    gradients = {name: np.random.default_rng(0).standard_normal(each.shape, np.float32) for name, each in named.items()}
    with autograd.record():
        loss = nd.add_n(*((each.data() * nd.array(gradients[name])).sum() for name, each in named.items()))
    loss.backward()
    exact = np.sqrt(sum(np.square(array, dtype=np.float64).sum() for array in gradients.values()))
    own = gluon.utils.clip_global_norm([nd.array(array) for array in gradients.values()], 1.0)
    rule.step(1)
    moved = np.sqrt(sum(np.square(each.data().asnumpy(), dtype=np.float64).sum() for each in named.values()))
    assert abs(moved - 1) < 2e-6, moved
    assert abs(own / exact - 1) > 1e-5, own / exact


def check_reference_rules_give_the_golden_trajectories():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.8966, 0.818574)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", form="epsilon-hat"), (0.9863474, 0.9813203, 0.9724438)),
        (rule("adamw", **decayed), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        found = trajectory(replace(spec, implementation="reference"))
        np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=str(spec))


def check_native_rules_have_their_declared_form():
    np.testing.assert_allclose(trajectory(rule("sgd", momentum=0.9)), (0.95, 0.925, 0.8725), rtol=2e-6)
    np.testing.assert_allclose(trajectory(rule("adam")), (0.9863474, 0.9813203, 0.9724438), rtol=2e-6)


def check_repeated_and_absent_embedding_rows_are_updated_once():
    p = parameter((1.0, 1.0, 1.0))
    update = optimizers.update_rule(Optimizer("sgd", 0.1), {"p": p})
    with autograd.record():
        loss = nd.take(p.data(), nd.array([1, 1])).sum()
    loss.backward()
    update.step(1)
    np.testing.assert_allclose(p.data().asnumpy(), (1.0, 0.8, 1.0), rtol=1e-6)


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


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients in float64 of two layers in both directions, as a graph and operator by operator."""
    found, x = {}, nd.array(np.linspace(-2, 2, 30).reshape(5, 2, 3), dtype="float64")
    x.attach_grad()
    for kind in ("fused", "cell", "loop"):
        assert recurrent.implementation_of(kind) == kind
        for hybrid in (True, False):
            with recurrent.built_as(kind):
                lstm = recurrent.Lstm("l", 3, 4, 5, layers=2, bidirectional=True)
            lstm.cast("float64")
            lstm.initialize(mx.init.Zero())
            trained = {name: p for name, p in lstm.collect_params().items() if p.grad_req != "null"}
            assert len(trained) == 12, list(trained)
            for number, (_, each) in enumerate(sorted(trained.items())):
                each.set_data(nd.array(np.random.default_rng(number).standard_normal(each.shape), dtype="float64"))
            lstm.hybridize(hybrid)
            with autograd.record():
                y = lstm(x)
                score = nd.sin(y).sum()
            score.backward()
            gradients = [each.grad().asnumpy() for _, each in sorted(trained.items())]
            found[kind, hybrid] = [y.asnumpy(), x.grad.asnumpy(), *gradients]
    for way in found.values():
        for each, expected in zip(way, found["fused", False], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)


def check_row_sparse_gradients_give_the_dense_update_unless_it_is_lazy():
    """One word twice, then another one: momentum moves the first word again, unless only rows of the batch are updated."""
    found = {}
    for spec in (Optimizer("sgd", 0.1), Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.1)):
        for kind in ("dense", "sparse", "lazy"):
            table = gluon.nn.Embedding(3, 1)
            layers.choose_gradients(table, kind)
            table.initialize(mx.init.One())
            assert process._embedding(kind) == kind
            rule = optimizers.update_rule(spec, {"p": table.weight}, lazy=kind == "lazy")
            for word in (1, 2):
                with autograd.record():
                    score = table(nd.array([word, word])).sum()
                score.backward()
                rule.step(1)
            assert (table.weight.grad().stype == "default") == (kind == "dense")
            found[spec.name, spec.momentum, kind] = table.weight.data().asnumpy().ravel()
        np.testing.assert_allclose(
            found[spec.name, spec.momentum, "sparse"], found[spec.name, spec.momentum, "dense"], 1e-6
        )
    np.testing.assert_allclose(found["sgd", 0.0, "lazy"], found["sgd", 0.0, "dense"], 1e-6)
    for name, momentum, moved in (("sgd", 0.9, 0.8), ("adam", 0.0, 0.9)):
        np.testing.assert_allclose(found[name, momentum, "lazy"][1], moved, rtol=1e-5)
        assert found[name, momentum, "dense"][1] < moved - 0.04, found


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "mxnet").loss()
    loss.hybridize()

    def found(logits, batch):
        logits = nd.array(logits)
        logits.attach_grad()
        with autograd.record():
            value = loss(logits, *(nd.array(array, dtype="int32") for array in batch.values()))
        value.backward()
        return value.asscalar(), logits.grad.asnumpy()

    network.load(HERE, "ctc_golden").compare(found)


def check_ctc_has_no_float64():
    """The reason why Deep Speech 2 is not offered in float64. If this fails, offer it."""
    logits = nd.zeros((4, 1, 3), dtype="float64")
    for dtype in ("float32", "float64", "int32"):
        labels, lengths, label_lengths = (nd.array(values, dtype=dtype) for values in ([[1, 2]], [4], [2]))
        try:
            nd.CTCLoss(
                logits, labels, lengths, label_lengths, use_data_lengths=True, use_label_lengths=True
            ).wait_to_read()
        except mx.MXNetError as error:
            assert "data type do not match" in str(error), error
        else:
            raise AssertionError(f"CTC of float64 logits runs with {dtype} labels.")


def check_running_variances_are_unbiased_where_the_number_of_values_changes():
    """The canonical recurrence in NumPy, over batches of two samples with different numbers of frames, some twice in a row."""
    norm = gluon.nn.BatchNorm(axis=1, momentum=0.9, epsilon=1e-5, in_channels=3, prefix="bn.")
    norm.initialize()
    named = dict(norm.collect_params().items())
    statistics = RunningStatistics(
        named, lambda shapes: {"bn": layers.BatchNorm(0.9, shapes[0][0] * shapes[0][2])}, ((2, 3, 8),)
    )
    generator, expected = np.random.default_rng(1), np.ones(3)
    for step, frames in enumerate((8, 5, 5, 3, 8)):
        x = nd.array(generator.normal(step, 1 + step, (2, 3, frames)))
        statistics.advance((x.shape,))
        with autograd.record():
            y = norm(x)
        y.backward()
        expected = 0.9 * expected + 0.1 * x.asnumpy().transpose(1, 0, 2).reshape(3, -1).astype(float).var(
            axis=1, ddof=1
        )
        if step in (1, 4):
            np.testing.assert_allclose(statistics.canonical()["bn.running_var"], expected, rtol=2e-6)


def check_settings_without_effect_are_reported():
    """A block that is not hybridized, one that is not cast, and an engine that was running before it was chosen."""
    settings = Settings("hybridized", precision="float64", knobs=KNOBS)
    found = process.read_back(settings)
    assert (found["mode"], found["precision"], found["engine"]) == ("hybridized", "float64", "threaded"), found
    with mock.patch.object(gluon.HybridBlock, "hybridize", lambda *_, **__: None):
        assert process.read_back(settings)["mode"] == "imperative"
    with mock.patch.object(gluon.Block, "cast", lambda *_: None):
        assert process.read_back(replace(settings, mode="imperative"))["precision"] == "float32"
    with mock.patch.object(recurrent, "Loop", recurrent.Cells):
        assert process.read_back(replace(settings, knobs=KNOBS | {"lstm": "loop"}))["lstm"] == "cell"
    with mock.patch.dict("os.environ", {"MXNET_ENGINE_TYPE": "NaiveEngine"}):
        assert process.read_back(settings)["engine"] == "threaded"


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            layer = layers.dropout(rate)
        with autograd.train_mode():
            return layer(nd.array(ones)).asnumpy()

    effects = network.load(HERE, "dropout_effects")
    effects.check_layer(dropped)
    for mode, names in (("imperative", effects.NETWORKS), ("hybridized", ["vgg16"])):
        adapters = [Adapter(Settings(mode, knobs=KNOBS | {"dropout": each})) for each in ("off", "on")]
        effects.check_networks("mxnet", *adapters, names=names)


def check_dropout_without_effect_is_reported():
    asked = Settings("hybridized", knobs=KNOBS | {"dropout": "on"})
    assert process.read_back(asked)["dropout"] == "on"
    with mock.patch.object(layers, "dropout", lambda _: layers.Unchanged()):
        assert process.read_back(asked)["dropout"] == "off"


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
