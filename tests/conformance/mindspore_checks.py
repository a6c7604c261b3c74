"""What the MindSpore adapter relies on; run by the interpreter of its environment."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

import steelyard_worker
from steelyard_worker import dropout, network
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.mindspore import layers, onednn, optimizers, pooling, recurrent, runtime
from steelyard_worker.frameworks.mindspore.adapter import Adapter
from steelyard_worker.protocol import Refusal

HERE = Path(__file__).parent
WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
KNOBS = {"avx512": "auto", "lstm": "fused", "embedding": "dense", "dropout": "off", "recomputation": "none"}
GRADIENTS = (0.5, -0.2, 0.3)
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = Parameter(Tensor(np.ones(1, np.float32)), name="p")
    update, _ = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for number, gradient in enumerate(GRADIENTS, 1):
        gradients = (Tensor(np.full(1, gradient, np.float32)),)
        if spec.implementation == "reference":
            update(gradients, *(Tensor(value, mindspore.float32) for value in optimizers.scalars(spec, number)))
        else:
            update(gradients)
        path.append(float(p.asnumpy()[0]))
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_reference_rules_give_the_golden_trajectories():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", form="epsilon-hat"), (0.9863474, 0.9813203, 0.9724438)),
        (rule("adamw", **decayed), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        found = trajectory(replace(spec, implementation="reference"))
        np.testing.assert_allclose(found, expected, rtol=3e-6, err_msg=str(spec))


def check_each_step_has_its_own_learning_rate():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.945, 0.9345)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.93132, 0.9156454)),
        (rule("adam"), (0.9863473, 0.9853419, 0.9835666)),
        (rule("adamw", **decayed), (0.9763473, 0.9733892, 0.9696671)),
    ]
    for mode in (mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE):
        mindspore.set_context(mode=mode)
        for spec, expected in golden:
            np.testing.assert_allclose(trajectory(spec, RATES), expected, rtol=3e-6, err_msg=f"{spec} {mode}")
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    p = Parameter(Tensor(np.ones(1, np.float32)), name="p")
    assert not optimizers.update_rule(rule("sgd", momentum=0.9), {"p": p})[0].dynamic_lr  # a constant of the graph


def check_native_rules_have_their_declared_form():
    np.testing.assert_allclose(trajectory(rule("sgd", momentum=0.9)), (0.95, 0.925, 0.8725), rtol=3e-6)
    np.testing.assert_allclose(trajectory(rule("adam")), (0.9863474, 0.9813203, 0.9724438), rtol=3e-6)


def check_running_variance_is_unbiased():
    layer = nn.BatchNorm1d(2, momentum=0.9).set_train()
    layer(Tensor(np.arange(8.0, dtype=np.float32).reshape(4, 2)))
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), (0.3, 0.4), rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), (1.566667, 1.566667), rtol=1e-5)


def check_reading_a_result_waits_for_it():
    a = Tensor(np.random.default_rng(1).standard_normal((1500, 1500)).astype(np.float32))
    ops.matmul(a, a).asnumpy()

    def intervals():
        begin = time.perf_counter()
        product = ops.matmul(a, a)
        for _ in range(4):
            product = ops.matmul(product, a)
        returned = time.perf_counter() - begin
        product.asnumpy()
        return returned, time.perf_counter() - begin

    # On a busy machine this thread may have to wait for a core, so one undisturbed attempt is enough.
    attempts = []
    for _ in range(5):
        returned, finished = intervals()
        if finished > 2 * returned:
            return
        attempts.append((returned, finished))
    raise AssertionError(attempts)


class _SumOfSines(nn.Cell):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def construct(self, x):
        return ops.sin(self.layer(x)).sum()


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients of two layers in both directions, in float32, with weights for which tanh is exact (P-53)."""
    found = {}
    for kind in ("fused", "cell", "loop"):
        assert recurrent.implementation_of(kind) == kind
        with recurrent.built_as(kind):
            lstm = recurrent.Lstm(3, 4, layers=2, bidirectional=True)
        named = lstm.named()
        for number, (name, each) in enumerate(sorted(named.items())):
            drawn = 0.3 * np.random.default_rng(number).standard_normal(each.shape)
            each.set_data(Tensor(drawn.astype("f4")))
            each.name = name
        trained = [named[name] for name in sorted(named)]
        assert {each.name for each in lstm.trainable_params()} == set(named)
        x = Tensor(np.linspace(-1, 1, 30).reshape(5, 2, 3).astype("f4"))
        score = mindspore.value_and_grad(_SumOfSines(lstm), 0, tuple(trained))
        value, (of_x, gradients) = score(x)
        found[kind] = [each.asnumpy() for each in (value, of_x, *gradients)]
    for way in found.values():
        for each, expected in zip(way, found["fused"], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-5)


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "mindspore").loss()
    differentiate = mindspore.value_and_grad(loss, 0)

    def found(logits, batch):
        value, gradient = differentiate(Tensor(logits), *map(Tensor, batch.values()))
        return value.asnumpy(), gradient.asnumpy()

    network.load(HERE, "ctc_golden").compare(found)


def check_an_average_includes_its_padding_and_a_maximum_rounds_up():
    averaged = pooling.AveragePool(3, 1, 1)(Tensor(np.ones((1, 1, 3, 3), "f4"))).asnumpy()
    np.testing.assert_allclose(averaged[0, 0, :2, :2] * 9, ((4, 6), (6, 9)), rtol=1e-6)
    for extent, window, expected in ((6, 3, (14, 16, 17)), (5, 2, (6, 8, 9)), (7, 3, (16, 18, 20)), (6, 2, (7, 9, 11))):
        rising = Tensor(np.arange(extent**2, dtype="f4").reshape(1, 1, extent, extent))
        found = pooling.MaxPool(window, 2, ceil=True)(rising).asnumpy()
        np.testing.assert_array_equal(found[0, 0, 0], expected)
    down = pooling.MaxPool(3, 2)(Tensor(np.arange(36, dtype="f4").reshape(1, 1, 6, 6))).asnumpy()
    np.testing.assert_array_equal(down[0, 0, 0], (14, 16))


def check_bins_that_do_not_divide_the_extent_overlap():
    x = np.arange(196, dtype="f4").reshape(1, 1, 14, 14)
    found = pooling.AdaptiveAveragePool(4)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(found[0, 0, 0, 1], x[0, 0, 0:4, 3:7].mean(), rtol=1e-6)


def check_networks_with_any_kind_of_convolution_disable_avx512():
    for kind, disables in (("conv", True), ("conv1d", True), ("dense", False)):
        parameters = [network.Parameter(name, (2, 2), each, "zeros") for name, each in (("a", "dense"), ("b", kind))]
        with (
            mock.patch.object(onednn, "_leave_avx512_alone") as disabled,
            mock.patch.object(onednn, "_effective", return_value=0),
        ):
            onednn.Instructions("auto").decide(SimpleNamespace(parameters=parameters))
        assert disabled.called == disables, kind


def check_instructions_that_the_processor_lacks_are_refused():
    with mock.patch.object(onednn, "_effective", return_value=0):
        try:
            raise AssertionError(onednn.Instructions("on").applied())
        except Refusal as refused:
            assert "no AVX-512" in str(refused)
    with mock.patch.object(onednn, "_effective", return_value=onednn.AVX512):
        assert onednn.Instructions("on").applied()["avx512"] == "on"


def check_settings_without_effect_are_reported():
    """A context that does not apply the mode, and a oneDNN that uses AVX-512 although it should be off."""
    modes = [runtime.MODES[name] for name in ("graph", "pynative")]
    before = mindspore.get_context("mode")
    try:
        for name, mode in runtime.MODES.items():
            mindspore.set_context(mode=next(other for other in modes if other != mode))
            with mock.patch.object(mindspore, "set_context"), mock.patch.object(runtime, "_set_device"):
                runtime.apply(Settings(name))
            assert runtime.applied()["mode"] != name
    finally:
        mindspore.set_context(mode=before)
    with (
        mock.patch.object(onednn, "_effective", return_value=onednn.AVX512),
        mock.patch.object(onednn, "_leave_avx512_alone"),
    ):
        assert onednn.Instructions("off").applied()["avx512"] == "on"
    with mock.patch.object(recurrent, "Loop", recurrent.Cells):
        assert recurrent.implementation_of("loop") == "cell"


def check_native_nesterov_momentum_has_its_declared_form():
    spec = rule("sgd", momentum=0.9, nesterov=True)
    np.testing.assert_allclose(trajectory(spec), (0.905, 0.9025, 0.82525), rtol=3e-6)


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            return layers.dropout(rate).set_train()(Tensor(ones)).asnumpy()

    effects = network.load(HERE, "dropout_effects")
    effects.check_layer(dropped)
    before = mindspore.get_context("mode")
    try:
        with mock.patch.object(runtime, "_set_device"):  # MindSpore takes a device before the first kernel only
            # oneDNN has its instructions already: other checks ran before in this process.
            knobs = KNOBS | {"avx512": "on"}
            adapters = [Adapter(Settings("pynative", knobs=knobs | {"dropout": each})) for each in ("off", "on")]
        effects.check_networks("mindspore", *adapters, names=["vgg16"])
    finally:
        mindspore.set_context(mode=before)


def check_dropout_without_effect_is_reported():
    assert layers.observed_dropout("on") == "on"
    with mock.patch.object(layers, "dropout", lambda _: nn.Identity()):
        assert layers.observed_dropout("on") == "off"


def check_recomputation_changes_nothing_but_memory():
    """MindSpore's second pass moves the running statistics again; `compute_again` makes the two moves one."""
    effects = network.load(HERE, "recomputation_effects")
    with mock.patch.object(runtime, "_set_device"):  # MindSpore takes a device before the first kernel only
        # oneDNN has its instructions already: other checks ran before in this process.
        knobs = KNOBS | {"avx512": "on"}
        adapters = [Adapter(Settings("graph", knobs=knobs | {"recomputation": each})) for each in ("none", "blocks")]
        effects.check_networks("mindspore", *adapters, names=("resnet18", "bert"), limit=1e-5)


def check_recomputation_without_effect_is_reported():
    assert layers.observed_recomputation("blocks") == "blocks"
    assert layers.observed_recomputation("none") == "none"
    with mock.patch.object(layers, "compute_again", lambda *_: None):
        assert layers.observed_recomputation("blocks") == "none"
