"""What the TensorFlow adapter relies on; run by the interpreter of its environment."""

import contextlib
import gc
import itertools
import time
import weakref
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import tensorflow as tf
import tomllib

import steelyard_worker
from steelyard_worker import batches, network, timing
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.tensorflow import (
    graphs,
    layers,
    layouts,
    mistakes,
    optimizers,
    passes,
    pooling,
    recurrent,
    traced,
    trainer,
)
from steelyard_worker.frameworks.tensorflow.adapter import Adapter
from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence
from steelyard_worker.network import Network, Parameter
from steelyard_worker.protocol import Refusal

HERE = Path(__file__).parent
WORKER = Path(steelyard_worker.__file__).parent
WORKLOADS = WORKER / "workloads"
FRAMEWORK = tomllib.loads((WORKER / "frameworks" / "tensorflow" / "framework.toml").read_text())
GRADIENTS = (0.5, -0.2, 0.3)
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)
KNOBS = {name: knob["default"] for name, knob in FRAMEWORK["knobs"].items()}
DECAYED = {"weight_decay": 0.1, "decay": ("p",)}


def trajectory(spec, kernel="fused", wrap=tf.function, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p, path = tf.Variable(tf.ones(1)), []
    update = wrap(optimizers.update_rule(spec, {"p": p}, kernel, rates))
    for gradient in GRADIENTS:
        update([tf.fill([1], gradient)])
        path.append(float(p[0]))
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_the_reference_implementation_gives_the_golden_trajectories():
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("sgd", momentum=0.9, **DECAYED), (0.94, 0.8966, 0.818574)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", **DECAYED), (0.9142857, 0.8715277, 0.8161729)),
        (rule("adamw", **DECAYED), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        found = trajectory(Optimizer(**{**vars(spec), "implementation": "reference"}))
        np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=str(spec))


def check_each_step_has_its_own_learning_rate_in_one_trace():
    golden = [
        (rule("sgd", momentum=0.9), ("fused", "reference"), (0.95, 0.945, 0.9345)),
        (rule("sgd", momentum=0.9, **DECAYED), ("fused", "reference"), (0.94, 0.93132, 0.9156454)),
        (rule("adam"), ("fused", "keras"), (0.9863473, 0.9853419, 0.9835666)),
        (rule("adam"), ("reference",), (0.9166667, 0.9111924, 0.9026924)),
        (rule("adamw", **DECAYED), ("fused", "keras"), (0.9763473, 0.9733892, 0.9696671)),
    ]
    functions = []

    def wrapped(update):
        functions.append(tf.function(update))
        return functions[-1]

    for spec, kernels, expected in golden:
        for kernel in kernels:
            implementation = "reference" if kernel == "reference" else "native"
            found = trajectory(Optimizer(**{**vars(spec), "implementation": implementation}), kernel, wrapped, RATES)
            np.testing.assert_allclose(found, expected, rtol=3e-6, err_msg=f"{spec} {kernel}")
            assert functions[-1].experimental_get_tracing_count() == 1
    # A constant rate is a constant of the graph, and nothing is looked up.
    for rates, looked_up in ((None, False), (RATES, True)):
        update = tf.function(optimizers.update_rule(rule("adam"), {"p": tf.Variable(tf.ones(1))}, "fused", rates))
        operations = update.get_concrete_function([tf.ones(1)]).graph.get_operations()
        assert any(each.type == "GatherV2" for each in operations) is looked_up
    kept = rule("sgd", momentum=0.9, implementation="reference", form="rate-in-momentum")
    np.testing.assert_allclose(trajectory(kept, rates=RATES), (0.95, 0.909, 0.8661), rtol=2e-6)


def check_keras_momentum_is_refused_with_rates_that_change():
    """Keras keeps each step's rate in the momentum. If this fails, it computes the canonical form, and the refusal can go."""
    import keras

    p = tf.Variable(tf.ones(1))
    own = keras.optimizers.SGD(keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.1, 0.02]), momentum=0.9)
    path = []
    for gradient in GRADIENTS:
        own.apply([tf.fill([1], gradient)], [p])
        path.append(float(p[0]))
    np.testing.assert_allclose(path, (0.95, 0.909, 0.8661), rtol=2e-6)
    try:
        trajectory(rule("sgd", momentum=0.9), "keras", rates=RATES)
    except Refusal as refusal:
        assert "tensorflow.update=fused" in str(refusal)
    else:
        raise AssertionError


def check_native_rules_and_the_reference_epsilon_hat_form_give_the_golden_trajectories():
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("sgd", momentum=0.9, **DECAYED), (0.94, 0.8966, 0.818574)),
        (rule("adam"), (0.9863474, 0.9813203, 0.9724438)),
        (rule("adam", **DECAYED), (0.9840523, 0.9754002, 0.9623879)),
        (rule("adamw", **DECAYED), (0.9763474, 0.9615568, 0.9430648)),
    ]
    for spec, expected in golden:
        strict = Optimizer(**{**vars(spec), "implementation": "reference", "form": "epsilon-hat"})
        np.testing.assert_allclose(trajectory(strict), expected, rtol=2e-6, err_msg=f"{spec} strict")
        for kernel in ("fused", "keras"):
            for wrap in (tf.function, lambda update: update):
                found = trajectory(spec, kernel, wrap)
                np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=f"{spec} {kernel}")


def check_the_fused_adam_corrects_its_bias_as_exactly_as_declared():
    # With a tiny epsilon the first step is exactly the learning rate, if 1 - beta2^1 and the weight of g^2 are one number.
    steps = {}
    for kernel in ("fused", "keras"):
        p = tf.Variable(tf.zeros(1))
        optimizers.update_rule(Optimizer("adam", 1.0, epsilon=1e-30), {"p": p}, kernel)([tf.ones(1)])
        steps[kernel] = -float(p[0])
    assert abs(steps["fused"] - 1) < 3e-7, steps
    assert 3e-6 < abs(steps["keras"] - 1) < 3e-5, steps


def check_bias_corrections_are_those_of_the_other_frameworks():
    t = tf.Variable(0, dtype=tf.int64)
    for correction in ("float32", "float64"):
        spec = rule("adam", correction=correction)
        for step in range(1, 7):
            t.assign(step)
            found = [float(each) for each in optimizers.bias_corrections(spec, t)]
            np.testing.assert_allclose(found, spec.corrections(step), rtol=1e-15)


def batch_norm(dtype):
    """Return a new layer over two channels and the variables that it created, which are not initialised."""
    variables = layers.Variables(dtype)
    layer = layers.BatchNorm(variables, "bn", 2, epsilon=1e-5, momentum=0.1)
    for name, value in (("gamma", 1), ("beta", 0), ("running_mean", 0), ("running_var", 1)):
        variables.named[f"bn.{name}"].assign(tf.fill(2, tf.constant(value, dtype)))
    return layer, variables.named


def check_statistics_change_only_in_training_and_the_variance_is_unbiased():
    for dtype in (tf.float32, tf.float64):
        for options in ({}, {"jit_compile": True}):
            layer, named = batch_norm(dtype)
            x = tf.reshape(tf.range(8, dtype=dtype), (2, 1, 2, 2))
            tf.function(lambda x, layer=layer: layer(x, False), **options)(x)
            np.testing.assert_array_equal(named["bn.running_mean"], (0, 0))
            y = tf.function(lambda x, layer=layer: layer(x, True), **options)(x)
            np.testing.assert_allclose(named["bn.running_mean"], (0.3, 0.4), rtol=1e-6)
            np.testing.assert_allclose(named["bn.running_var"], (1.566667, 1.566667), rtol=1e-6)
            np.testing.assert_allclose(y[0, 0, 0], np.full(2, -3 / np.sqrt(5 + 1e-5)), rtol=1e-6)


def check_the_fused_batch_norm_uses_the_given_epsilon():
    # The compatibility function raises 1e-5 to 1.001e-5; with a variance near zero the two differ visibly.
    x = tf.constant([[[[1e-3, 0.0]]], [[[-1e-3, 1.0]]]])
    y = batch_norm(tf.float32)[0](x, True).numpy().ravel()[0]
    assert abs(y - 1e-3 / np.sqrt(1e-6 + 1e-5)) < 1e-6, y


def check_pools_by_the_library_and_by_slices_agree():
    """Maxima rounded up on even and odd extents, with ties; averages that include padding: values and gradients."""
    generator = np.random.default_rng(3)
    ties = tf.constant(generator.integers(-2, 2, (2, 7, 7, 3)).astype("f4"))
    smooth = tf.constant(generator.standard_normal((2, 7, 7, 3), "f4"))
    cases = [
        *((pooling.MaxPool, ties[:, :n, :n], each) for n in (6, 7) for each in ((3, 2), (3, 1, 1), (2, 2), (3, 2, 1))),
        *((pooling.AveragePool, smooth, each) for each in ((3, 1, 1), (5, 3))),
    ]
    for layer, x, each in cases:
        for options in ({"ceil": True}, {}) if layer is pooling.MaxPool else ({},):
            pools = [layer(layers.Variables(tf.float32, fuse=fuse), *each, **options) for fuse in (True, False)]
            (y, dx), (z, dz) = (pooled_with_gradient(pool, x) for pool in pools)
            np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(dx, dz, rtol=1e-5, atol=1e-6)


def pooled_with_gradient(pool, x):
    """Return a pool's output of x, and the gradient of a sum in which every position has a different weight."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(x)
        total = tf.reduce_sum(y * np.arange(1, np.prod(y.shape) + 1, dtype="f4").reshape(y.shape) / 100)
    return y, tape.gradient(total, x)


def check_an_average_includes_its_padding_and_a_maximum_rounds_up():
    for fuse in (True, False):
        variables = layers.Variables(tf.float32, fuse=fuse)
        averaged = pooling.AveragePool(variables, 3, 1, 1)(tf.ones((1, 3, 3, 1)))
        np.testing.assert_allclose(averaged[0, :2, :2, 0] * 9, ((4, 6), (6, 9)), rtol=1e-6)
        rising = tf.reshape(tf.range(36.0), (1, 6, 6, 1))
        np.testing.assert_array_equal(pooling.MaxPool(variables, 3, 2, ceil=True)(rising)[0, 0, :, 0], (14, 16, 17))


def check_a_strided_convolution_pads_both_ends():
    weight = np.zeros((3, 3, 1, 1), "f4")
    weight[1] = 1  # the middle row: one-dimensional along the width
    x = tf.constant(np.tile(np.arange(1, 7, dtype="f4"), (1, 6, 1)).reshape(1, 6, 6, 1))
    for formulation in ("library", "matmul"):
        variables = layers.Variables(tf.float32, formulation)
        convolution = layers.Convolution(variables, "c", 1, 1, 3, 2, 1)
        variables.named["c.weight"].assign(weight)
        np.testing.assert_array_equal(convolution(x)[0, 0, :, 0], (3, 9, 15))


def check_the_formulations_of_recurrence_agree():
    generator, found = np.random.default_rng(0), {}
    x = tf.constant(generator.standard_normal((5, 3, 4)))
    values = [generator.standard_normal(shape) for shape in ((4, 24), (6, 24), (24,))]
    for formulation in ("loop", "hoisted", "deferred", "keras"):
        kind = "cell" if formulation == "keras" else "loop"
        variables = layers.Variables(tf.float64, recurrence=Recurrence(formulation), lstm=kind)
        assert traced.lstm(variables) == kind
        variables.named.clear()
        lstm = recurrent.Lstm(variables, "l", 4, 6)
        for variable, value in zip(variables.named.values(), values, strict=True):
            variable.assign(value)
        for run in (lambda f: f, tf.function):
            found[formulation, run] = [each.numpy() for each in run(_differentiated)(lstm, x)]
        np.testing.assert_allclose(lstm.every(x, backward=True)[::-1], lstm.every(x[::-1], backward=False), rtol=1e-12)
        np.testing.assert_allclose(lstm.every(x, backward=False)[-1], lstm.last(x), rtol=1e-12)
    assert len(found) == 8
    for way in found.values():
        for each, expected in zip(way, found["loop", tf.function], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)


def _differentiated(lstm, x):
    """Return both outputs of a layer, and the gradients of a score that depends on both."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        every, last = lstm.every(x, backward=True), lstm.last(x)
        score = tf.reduce_sum(tf.sin(every)) + tf.reduce_sum(tf.cos(last))
    weights = tape.watched_variables()
    assert len(weights) == 3, weights
    return every, last, *tape.gradient(score, [x, *weights])


def check_recurrences_choose_by_units_per_sample():
    chosen = Recurrence(small="hoisted")
    assert [chosen.resolved(units, 8).formulation for units in (31, 32)] == ["hoisted", "deferred"]
    assert Recurrence("loop").resolved(1024, 1).formulation == "loop"


def check_the_fused_lstm_has_wrong_gradients():
    """The reason why tf.raw_ops.BlockLSTMV2 is not used: its gradient contradicts finite differences. If this fails, try it."""
    generator = np.random.default_rng(0)
    x, w = (tf.constant(generator.standard_normal(shape), tf.float32) for shape in ((2, 1, 1), (2, 4)))
    zeros = {name: tf.zeros(shape) for name, shape in (("cs_prev", (1, 1)), ("h_prev", (1, 1)), ("b", 4))}
    zeros |= {name: tf.zeros(1) for name in ("wci", "wcf", "wco")}

    def fused(x):
        steps = tf.constant(2, tf.int64)
        return tf.reduce_sum(tf.raw_ops.BlockLSTMV2(seq_len_max=steps, x=x, w=w, cell_clip=0.0, **zeros).h)

    with tf.GradientTape() as tape:
        tape.watch(x)
        score = fused(x)
    shift = tf.constant((0.01, 0.0), shape=(2, 1, 1))
    difference = float(fused(x + shift) - fused(x - shift)) / 0.02
    gradient = float(tape.gradient(score, x)[0, 0, 0])
    assert abs(difference + 0.1961) < 1e-3, difference
    assert abs(gradient - difference) > 0.1, gradient


def embedding_trainer(kernel, mode, spec=None, embedding="dense"):
    """Return a trainer of three rows of one number; its loss is the sum of the rows that the tokens select."""

    def build(sizes, variables):
        table = variables.new("table", *sizes["shape"])
        return lambda tokens, training: {"rows": tf.gather(table, tokens)}

    parts = SimpleNamespace(INPUTS=("tokens",), build=build, loss=lambda outputs, batch: tf.reduce_sum(outputs["rows"]))
    tensors = Network((Parameter("table", (3, 1), "embedding", "constant:1"),), (), 0)
    weights, spec = {"table": np.ones((3, 1), "f4")}, spec or Optimizer("adam", 0.1, epsilon=1e-8)
    wrap = (lambda f: f) if mode == "eager" else tf.function
    return trainer.Trainer(
        wrap, layers.Variables(tf.float32), parts, {"shape": (3, 1)}, tensors, weights, spec, kernel,
        embedding=embedding,
    )  # fmt: skip


def check_repeated_and_absent_embedding_rows_are_updated_once():
    for kernel in ("fused", "keras"):
        for mode in ("graph", "eager"):
            trained = embedding_trainer(kernel, mode)
            batch = trained.put({"tokens": np.array([1, 1], "i4")})
            np.testing.assert_array_equal(trained.gradients(batch)[2]["table"].ravel(), (0, 2, 0))
            trained.step(batch)
            np.testing.assert_allclose(trained.state()["table"].ravel(), (1.0, 0.9, 1.0), rtol=1e-5)


def check_slices_give_the_dense_update_of_sgd():
    for mode in ("graph", "eager"):
        trained = embedding_trainer("fused", mode, Optimizer("sgd", 0.1), "sparse")
        batch = trained.put({"tokens": np.array([1, 1], "i4")})
        np.testing.assert_array_equal(trained.gradients(batch)[2]["table"].ravel(), (0, 2, 0))
        trained.step(batch)
        np.testing.assert_allclose(trained.state()["table"].ravel(), (1.0, 0.8, 1.0), rtol=1e-6)


def check_layout_round_trips_are_bit_exact():
    for kind, axes in layouts.AXES.items():
        array = np.random.default_rng(1).standard_normal(tuple(range(2, 2 + len(axes)))).astype("f4")
        there = layouts.native(kind, array)
        assert there.flags.c_contiguous
        assert there.shape == tuple(array.shape[axis] for axis in axes)
        np.testing.assert_array_equal(layouts.canonical(kind, there), array)


def check_synchronise_waits_for_issued_work():
    @tf.function
    def work(x):
        for _ in tf.range(150):
            x = tf.matmul(x, x) * 1e-3
        return x

    trained, x = embedding_trainer("fused", "graph"), tf.ones((512, 512))
    work(x)
    tf.config.experimental.set_synchronous_execution(False)

    def intervals():
        began = time.perf_counter()
        found = work(x)
        issued = time.perf_counter()
        trained.synchronise()
        waited = time.perf_counter()
        found.numpy()
        return issued - began, waited - began, time.perf_counter() - waited

    try:
        # On a busy machine this thread may have to wait for a core, so one undisturbed attempt is enough.
        attempts = []
        for _ in range(5):
            issuing, both, reading = intervals()
            if issuing < both / 5 and reading < both / 5:
                return
            attempts.append((issuing, both, reading))
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    raise AssertionError(attempts)


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "tensorflow").loss

    def found(logits, batch):
        logits = tf.convert_to_tensor(logits)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss({"logits": logits}, batch)
        return value, tape.gradient(value, logits)

    golden = network.load(HERE, "ctc_golden")
    for wrap in (lambda f: f, tf.function, lambda f: tf.function(f, jit_compile=True)):
        golden.compare(wrap(found))


def adapter_of(mode, **knobs):
    """Return an adapter; `knobs` replaces the defaults."""
    return Adapter(Settings(mode, knobs=KNOBS | knobs))


def check_settings_without_effect_are_reported():
    """Functions that run eagerly, formulations that are not used, and kernels of another rule."""
    chosen = {"onednn": True, "convolution": "matmul", "lstm": "cell", "recurrence": "deferred", "update": "keras"}
    chosen |= {"embedding": "sparse", "shapes": "dynamic"}
    adapter = adapter_of("graph", **chosen)
    found = adapter.applied()
    assert {**found, **chosen, "mode": "graph"} == found, found
    tf.config.run_functions_eagerly(True)
    try:
        assert adapter.applied()["mode"] == "eager"
    finally:
        tf.config.run_functions_eagerly(False)
    with mock.patch.object(adapter, "_compile", partial(tf.function, autograph=False)):
        assert adapter.applied()["shapes"] == "static"
    with mock.patch.object(layers, "convolve", lambda _, x, weight, *__: tf.nn.conv2d(x, weight, 1, "SAME")):
        assert adapter.applied()["convolution"] == "library"
    for other in ("loop", "hoisted"):
        with mock.patch.object(Recurrence, "resolved", lambda *_, other=other: Recurrence(other)):
            assert adapter.applied()["recurrence"] == other
    with mock.patch.object(optimizers, "_keras_rule", optimizers.Fused):
        assert adapter.applied()["update"] == "fused"


def check_automatic_and_fixed_formulations_are_distinguished():
    for mode, automatic in (("graph", "library"), ("xla", "auto")):
        adapter = adapter_of(mode)
        assert {**adapter.applied(), **KNOBS, "mode": mode} == adapter.applied()
        assert traced.convolution(adapter._variables, "matmul") == automatic
        with mock.patch.object(Recurrence, "resolved", lambda *_: Recurrence("deferred")):
            assert adapter.applied()["recurrence"] == "deferred"


def classifier(adapter, spec):
    """Return a trainer of a dense layer with the mean cross-entropy, and the 20 batches of five samples that are its feed."""

    def build(sizes, variables):
        layer = layers.Dense(variables, "head", sizes["features"], sizes["classes"])
        return lambda values, training: {"logits": layer(values)}

    def loss(outputs, batch):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))

    parts = SimpleNamespace(INPUTS=("values",), build=build, loss=loss)
    tensors = Network(
        (Parameter("head.weight", (3, 4), "dense", "normal"), Parameter("head.bias", (3,), "bias", "zero")), (), 0
    )
    draw = np.random.default_rng(1)
    weights = {"head.weight": draw.normal(size=(3, 4)).astype("f4"), "head.bias": np.zeros(3, "f4")}
    values, labels = draw.normal(size=(100, 4)).astype("f4"), draw.integers(0, 3, 100, np.int32)
    split = batches.Split({"values": values, "label": labels}, None)
    source = batches.Source(split, np.arange(100, dtype=np.int32).reshape(20, 5))
    built = adapter.trainer(parts, {"features": 4, "classes": 3}, tensors, weights, spec)
    return built, source


def fitting_adapter(mode="fit", **more):
    """Return an adapter whose training step is Keras's, in a loop or in `fit`."""
    return adapter_of(mode, **{"update": "keras", **more})


def losses_in_blocks(adapter, spec, blocks=(1, 5, 14)):
    """Return the losses of blocks of steps on the pipeline, and the trainer."""
    built, source = classifier(adapter, spec)
    feed = adapter.pipeline(built, source, 0)
    found = [timing.time_block(built, feed, steps, time.perf_counter_ns) for steps in blocks]
    assert [len(block.stamps_ns) for block in found] == list(blocks)
    return np.concatenate([built.losses(block.handles) for block in found]), built


def check_fit_has_the_losses_and_weights_of_the_loop_on_the_same_batches_across_blocks():
    for spec in (Optimizer("sgd", 0.1, momentum=0.9), Optimizer("adam", 0.01)):
        expected, loop = losses_in_blocks(fitting_adapter("graph"), spec)
        found, fitted = losses_in_blocks(fitting_adapter(), spec)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        for name, tensor in loop.state().items():
            np.testing.assert_allclose(fitted.state()[name], tensor, rtol=1e-6, atol=1e-7)


def check_one_call_of_fit_trains_through_all_blocks_and_epochs():
    import keras

    calls, adapter = [], fitting_adapter()
    kept = keras.Model.fit

    def counted(self, *arguments, **options):
        calls.append(options["steps_per_epoch"])
        return kept(self, *arguments, **options)

    with mock.patch.object(keras.Model, "fit", counted):
        _, built = losses_in_blocks(adapter, Optimizer("sgd", 0.1), (1, 19, 20, 5))
    assert (calls, built._call.epochs, adapter.compilations()) == ([20], 3, 1)


def check_fit_goes_on_with_another_feed_and_with_single_batches():
    adapter = fitting_adapter()
    spec = Optimizer("sgd", 0.1)
    fitted, source = classifier(adapter, spec)
    loop, _ = classifier(fitting_adapter("graph"), spec)
    pipeline, cached = adapter.pipeline(fitted, source, 0), itertools.repeat(fitted.put(source.batch(7)))
    found = [*fitted.run(pipeline, 3, lambda: None), *fitted.run(cached, 2, lambda: None)]
    found += [fitted.step(fitted.put(source.batch(number))) for number in (9, 4)]
    expected = [loop.step(loop.put(source.batch(number))) for number in (0, 1, 2, 7, 7, 9, 4)]
    np.testing.assert_allclose(fitted.losses(found), loop.losses(expected), rtol=1e-6)


def check_a_failure_inside_fit_is_raised_where_the_step_was_asked_for():
    adapter = fitting_adapter()
    fitted, source = classifier(adapter, Optimizer("sgd", 0.1))
    with mock.patch.object(fitted.model, "_loss_of", mock.Mock(side_effect=MemoryError("planted"))):
        for _ in range(2):
            try:
                fitted.run(adapter.pipeline(fitted, source, 0), 1, lambda: None)
            except MemoryError as error:
                assert "planted" in str(error)
            else:
                raise AssertionError


def check_the_thread_of_fit_ends_with_its_trainer():
    adapter = fitting_adapter()
    fitted, source = classifier(adapter, Optimizer("sgd", 0.1))
    fitted.step(fitted.put(source.batch(0)))
    thread, gone = fitted._call._thread, weakref.ref(fitted)
    assert thread.is_alive()
    del fitted
    gc.collect()
    thread.join(10)
    assert gone() is None
    assert not thread.is_alive()


def check_training_without_fit_is_reported():
    """A loop over `train_on_batch` computes the same steps, but it is not what `fit` does."""
    import keras

    adapter = fitting_adapter(update="auto")
    found = adapter.applied()
    assert (found["mode"], found["update"]) == ("fit", "auto"), found

    def without_epochs(self, dataset, callbacks, **_):
        (hold,) = callbacks
        hold.set_model(self)
        for batch in dataset:
            self.train_on_batch(batch)
            hold.on_train_batch_end(0)
            if self.stop_training:
                break

    with mock.patch.object(keras.Model, "fit", without_epochs):
        assert adapter.applied()["mode"] == "unknown"


def check_dropout_has_its_rate_and_acts_in_training_only():
    layer_of = layers.Variables(tf.float32, dropout=True)
    effects = network.load(HERE, "dropout_effects")
    effects.check_layer(lambda ones, rate: layers.Dropout(layer_of, rate)(tf.constant(ones), training=True).numpy())
    eager = [adapter_of("eager", dropout=each) for each in ("off", "on")]
    effects.check_networks("tensorflow", *eager, names=effects.NETWORKS)
    compiled = [adapter_of("xla", dropout=each) for each in ("off", "on")]
    effects.check_networks("tensorflow", *compiled, names=["vgg16"])


def check_dropout_without_effect_is_reported():
    adapter = adapter_of("graph", dropout="on")
    assert adapter.applied()["dropout"] == "on"
    with mock.patch.object(layers.Dropout, "__call__", lambda _, x, training: x):
        assert adapter.applied()["dropout"] == "off"


def check_the_mistakes_of_the_published_program_have_the_losses_and_gradients_that_follow_from_them():
    """softmax twice: the loss of the probabilities; summed: as many times the gradient as the batch has samples."""

    def gradients(kind):
        built, source = classifier(adapter_of("eager", loss=kind), Optimizer("sgd", 0.1))
        _, loss, found = built.gradients(built.put(source.batch(0)))
        return built, source, loss, found["head.bias"]

    built, source, right, gradient = gradients("as-described")
    _, _, same, summed = gradients("summed")
    np.testing.assert_allclose(same, right, rtol=1e-6)
    np.testing.assert_allclose(summed, 5 * gradient, rtol=1e-6)
    batch = source.batch(0)
    logits = built.outputs(built.put(batch))["logits"].astype("f8")
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    again = np.exp(chances) / np.exp(chances).sum(1, keepdims=True)
    _, _, twice, flat = gradients("softmax-twice")
    np.testing.assert_allclose(twice, -np.log(again[np.arange(5), batch["label"]]).mean(), rtol=1e-5)
    assert np.linalg.norm(flat) < 0.8 * np.linalg.norm(gradient)
    np.testing.assert_allclose(gradients("softmax-twice-and-summed")[3], 5 * flat, rtol=1e-5)


def check_a_loss_without_its_mistake_is_reported():
    for kind in ("as-described", "softmax-twice", "summed", "softmax-twice-and-summed"):
        assert adapter_of("graph", loss=kind).applied()["loss"] == kind
    with mock.patch.object(mistakes, "_twice", lambda outputs: outputs):
        assert adapter_of("graph", loss="softmax-twice-and-summed").applied()["loss"] == "summed"


def check_every_choice_of_passes_is_reported():
    with every_pass_afterwards():
        for value in FRAMEWORK["knobs"]["passes"]["values"]:
            passes.choose(value)
            assert passes.observed() == value
        tf.config.optimizer.set_experimental_options({"remapping": False})
        assert passes.observed() == "unknown"
        assert adapter_of("graph", passes="pruning").applied()["passes"] == "pruning"


def check_each_pass_removes_its_own_nodes():
    """A product that nothing uses, an expression that is there twice, and a sum of constants."""

    def step(batch):
        _ = batch["x"] * 7.0
        return tf.exp(batch["x"]) + tf.exp(batch["x"]) + (tf.constant(1.0) + tf.constant(2.0))

    with every_pass_afterwards():
        found = list(graphs.stages(step, graph_of, {"x": tf.ones(3)}, "all"))
    traced, run = (stage.kinds for stage in found[:2])
    by_passes = {stage.passes: stage.kinds for stage in found[2:]}
    assert traced["Mul"] == 1
    assert traced["Exp"] == 2
    assert by_passes["none"] == traced
    assert "Mul" not in by_passes["pruning"]
    assert by_passes["pruning"]["Exp"] == 2
    assert by_passes["arithmetic"]["Exp"] == 1
    assert by_passes["folding"]["AddV2"] < traced["AddV2"]
    assert run["Exp"] == 1


def check_a_process_with_its_own_choice_counts_that_alone():
    with every_pass_afterwards():
        passes.choose("none")
        found = list(graphs.stages(lambda batch: batch["x"] * 2.0, graph_of, {"x": tf.ones(3)}, "none"))
    assert [stage.passes for stage in found] == ["", ""]


def graph_of(function):
    """Return the function as a graph."""
    return tf.function(function, autograph=False)


@contextlib.contextmanager
def every_pass_afterwards():
    """All checks share one process."""
    try:
        yield
    finally:
        passes.choose("all")


def check_recomputation_changes_nothing_but_memory():
    effects = network.load(HERE, "recomputation_effects")
    for mode, names in (("eager", ("resnet18", "vgg16", "gnmt")), ("graph", ("resnet18", "bert"))):
        adapters = [adapter_of(mode, recomputation=each) for each in ("none", "blocks")]
        effects.check_networks("tensorflow", *adapters, names=names, limit=1e-5)


def check_recomputation_without_effect_is_reported():
    adapter = adapter_of("graph", recomputation="blocks")
    assert adapter.applied()["recomputation"] == "blocks"
    with mock.patch.object(layers.Variables, "block", lambda _, part: part):
        assert adapter.applied()["recomputation"] == "none"
