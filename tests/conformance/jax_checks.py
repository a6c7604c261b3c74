"""What the JAX adapter relies on; run by the interpreter of its environment."""

import itertools
from dataclasses import replace
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import tomllib
from jax import lax

import steelyard_worker
from steelyard_worker import network
from steelyard_worker.batches import Source, Split
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.jax import convolution, layers, layouts, optimizers, pooling, traced
from steelyard_worker.frameworks.jax.adapter import Adapter
from steelyard_worker.frameworks.jax.recurrence import Recurrence

HERE = Path(__file__).parent
WORKER = Path(steelyard_worker.__file__).parent
WORKLOADS = WORKER / "workloads"
FRAMEWORK = tomllib.loads((WORKER / "frameworks" / "jax" / "framework.toml").read_text(encoding="utf-8"))
GRADIENTS = (0.5, -0.2, 0.3)
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)
IMAGES = {"channels": 3, "image": 32, "width": 8, "stem": "seed", "classes": 10, "batch": 4}
WORDS = {
    "vocabulary": 50, "length": 6, "embedding": 4, "hidden": 3, "layers": 1, "bidirectional": True,
    "readout": "first+last", "train_embedding": True, "classes": 2, "batch": 4,
}  # fmt: skip


def draw(*shape):
    """Return seeded float64 noise."""
    return np.random.default_rng(3).standard_normal(shape)


def adapter_of(mode="jit", knobs=None, **settings):
    """Return an adapter; `knobs` replaces the defaults."""
    defaults = {name: knob["default"] for name, knob in FRAMEWORK["knobs"].items()}
    return Adapter(Settings(mode=mode, knobs=defaults | (knobs or {}), **settings))


def trainer(workload="lstm-imdb", sizes=WORDS, optimizer=None, **settings):
    """Return (adapter, trainer, one canonical batch) with random weights."""
    adapter = adapter_of(**{"mode": "jit", **settings})
    described = network.describe(WORKLOADS / workload, sizes)
    weights = {p.name: (0.1 * draw(*p.shape)).astype("f4") for p in described.parameters}
    weights |= {p.name: np.ones(p.shape, "f4") for p in described.parameters if p.kind == "running_var"}
    batch = {
        i.name: (np.arange(sizes["batch"] * np.prod(i.shape, dtype=int)) % i.high).reshape(-1, *i.shape).astype("i4")
        if i.high
        else draw(sizes["batch"], *i.shape).astype("f4")
        for i in described.inputs
    }
    rule = optimizer or Optimizer("sgd", 0.1, momentum=0.9)
    built = adapter.trainer(network.load(WORKLOADS / workload, "jax"), sizes, described, weights, rule)
    return adapter, built, batch


def trajectory(spec, rates=None, wrap=lambda update: update):
    """Return p after each of three gradients, from p = 1."""
    tensors = {"p": jnp.ones(1, jnp.float32)}
    rule = optimizers.update_rule(spec, ["p"], rates)
    update = wrap(rule.update)
    memory, path = rule.init(tensors), []
    for gradient in GRADIENTS:
        tensors, memory = update(tensors, {"p": jnp.full(1, gradient, jnp.float32)}, memory, rule.scalars())
        path.append(float(tensors["p"][0]))
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_settings_are_read_back_from_jax():
    """Must be the first check, because XLA reads its environment variables once per process."""
    requested = {"convolution": "matmul", "recurrence": "hoisted", "unroll": 2}
    found = adapter_of(threads=3, deterministic=True, knobs=requested).applied()
    expected = {"mode": "jit", "device": "cpu", "threads": 3, "precision": "float32", "deterministic": True}
    assert {**found, **expected, **requested} == found, found


def check_each_step_has_its_own_learning_rate_in_one_program():
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.945, 0.9345)),
        (rule("adam"), (0.9166667, 0.9111924, 0.9026924)),
        (rule("adamw", weight_decay=0.1, decay=("p",)), (0.9066667, 0.8993791, 0.8890803)),
    ]
    compiled = []

    def jitted(update):
        compiled.append(jax.jit(update))
        return compiled[-1]

    for spec, expected in golden:
        for implementation in ("reference", "native"):
            found = trajectory(replace(spec, implementation=implementation), RATES, jitted)
            np.testing.assert_allclose(found, expected, rtol=3e-6, err_msg=f"{spec} {implementation}")
            assert compiled[-1]._cache_size() == 1
    # A constant rate is a number in the program, and nothing is looked up.
    tensors = {"p": jnp.ones(1, jnp.float32)}
    for rates, looked_up in ((None, False), (RATES, True)):
        native = optimizers.update_rule(rule("adam"), ["p"], rates)
        program = str(jax.make_jaxpr(native.update)(tensors, tensors, native.init(tensors), {}))
        assert ("dynamic_slice" in program or "gather" in program) is looked_up, program
    kept = rule("sgd", momentum=0.9, implementation="reference", form="rate-in-momentum")
    np.testing.assert_allclose(trajectory(kept, RATES), (0.95, 0.909, 0.8661), rtol=2e-6)


def check_every_formulation_is_recognised():
    for formulation in ("auto", "xla", "matmul"):
        applied = adapter_of(knobs={"convolution": formulation}).applied()
        assert applied["convolution"] == formulation, applied
    for formulation, unroll in itertools.product(("auto", "deferred", "checkpointed", "scan", "hoisted"), (1, 4)):
        knobs = {"recurrence": formulation, "unroll": unroll}
        applied = adapter_of("no-jit", knobs).applied()
        assert {**applied, **knobs, "mode": "no-jit"} == applied, applied


def check_both_implementations_give_the_golden_trajectories():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.8966, 0.818574)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", **decayed), (0.9142857, 0.8715277, 0.8161729)),
        (rule("adamw", **decayed), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        for implementation in ("reference", "native"):
            found = trajectory(replace(spec, implementation=implementation))
            np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=f"{spec} {implementation}")


def check_the_epsilon_hat_form_gives_its_golden_trajectory():
    found = trajectory(rule("adam", implementation="reference", form="epsilon-hat"))
    np.testing.assert_allclose(found, (0.9863474, 0.9813203, 0.9724438), rtol=2e-6)


def check_optax_corrects_the_bias_in_float32():
    """P-41: a relative difference of 7e-6 in the first step of 0.1 (half of 1.4e-5 in the square root's argument)."""
    native, *_ = trajectory(Optimizer("adam", 0.1))
    single, *_ = trajectory(Optimizer("adam", 0.1, implementation="reference", correction="float32"))
    double, *_ = trajectory(Optimizer("adam", 0.1, implementation="reference", correction="float64"))
    assert abs(native - single) < 1e-7 < 5e-7 < abs(native - double), (native, single, double)


def check_layout_round_trips_are_bit_exact():
    for kind, shape in {"conv": (5, 4, 3, 2), "dense": (3, 2), "lstm_w_ih": (8, 3), "lstm_b": (8,)}.items():
        canonical = draw(*shape).astype("f4")
        native = layouts.to_native(kind, canonical, "float32")
        assert np.array_equal(layouts.to_canonical(kind, np.asarray(jnp.array(native))), canonical), kind
    assert layouts.to_native("conv", draw(5, 4, 3, 2), "float32").shape == (3, 2, 4, 5)


def check_the_formulations_of_convolution_agree():
    """Image sizes below and above XLA's slow case, and a projected shortcut: value and both gradients, in float64."""
    jax.config.update("jax_enable_x64", True)
    for image, size, stride in ((8, 1, 2), (8, 3, 2), (4, 3, 2), (3, 3, 1), (2, 3, 1), (1, 3, 1)):
        x, kernel = jnp.array(draw(2, image, image, 3)), jnp.array(draw(size, size, 3, 4))

        def summed(x, kernel, formulation, stride=stride, padding=size // 2):
            return jnp.sum(jnp.sin(convolution.convolve(formulation, x, kernel, stride, padding)))

        results = [
            jax.jit(jax.value_and_grad(summed, (0, 1)), static_argnums=2)(x, kernel, formulation)
            for formulation in ("xla", "matmul", "auto")
        ]
        for result in results[1:]:
            for found, expected in zip(jax.tree.leaves(result), jax.tree.leaves(results[0]), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def check_the_pool_sends_the_gradient_of_a_tie_to_its_first_maximum():
    """The same gradient as `lax.reduce_window`, on images with many ties, with and without overlap and padding."""
    x = jnp.array(np.random.default_rng(1).integers(-2, 2, (2, 9, 9, 3)).astype("f4"))
    for window, stride, padding in ((2, 2, 0), (3, 2, 1)):

        def reference(x, window=window, stride=stride, padding=padding):
            shape, strides = (1, window, window, 1), (1, stride, stride, 1)
            edges = ((0, 0), (padding, padding), (padding, padding), (0, 0))
            return lax.reduce_window(x, -jnp.inf, lax.max, shape, strides, edges)

        expected, back = jax.vjp(reference, x)
        found, pull = jax.vjp(lambda x, w=window, s=stride, p=padding: pooling.max_pool(x, w, s, p), x)
        seed = jnp.array(draw(*expected.shape), jnp.float32)
        assert np.array_equal(found, expected)
        np.testing.assert_allclose(pull(seed)[0], back(seed)[0], rtol=1e-6)


def check_pools_round_up_and_include_their_padding():
    """Compared with XLA's own window reductions: extents that round up and that do not, the average with its own gradient."""
    x = jnp.array(draw(2, 7, 7, 3), jnp.float32)
    for extent, window, stride, after in ((6, 3, 2, 1), (7, 3, 2, 0), (5, 2, 2, 1), (6, 2, 2, 0)):
        edges = ((0, 0), (0, after), (0, after), (0, 0))
        seen = x[:, :extent, :extent]
        expected = lax.reduce_window(seen, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), edges)
        assert np.array_equal(pooling.max_pool(seen, window, stride, ceil=True), expected), (extent, window)
    for window, stride, padding in ((3, 1, 1), (5, 3, 0)):

        def reference(x, window=window, stride=stride, padding=padding):
            edges = ((0, 0), (padding, padding), (padding, padding), (0, 0))
            return lax.reduce_window(x, 0.0, lax.add, (1, window, window, 1), (1, stride, stride, 1), edges) / window**2

        expected, back = jax.vjp(reference, x)
        found, pull = jax.vjp(lambda x, w=window, s=stride, p=padding: pooling.average_pool(x, w, s, p), x)
        seed = jnp.array(draw(*expected.shape), jnp.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pull(seed)[0], back(seed)[0], rtol=1e-5, atol=1e-6)


def check_bins_that_do_not_divide_the_extent_overlap():
    np.testing.assert_allclose(pooling.bins(5, 4) * 2, np.eye(4, 5) + np.eye(4, 5, 1))
    x = jnp.arange(196.0).reshape(1, 14, 14, 1)
    found = pooling.adaptive_average_pool(x, 4)[0, :, :, 0]
    assert float(found[0, 1]) == float(jnp.mean(x[0, 0:4, 3:7, 0]))  # floor(14/4) to ceil(28/4)


def check_the_formulations_of_recurrence_agree():
    jax.config.update("jax_enable_x64", True)
    x, w_ih, w_hh, b = (jnp.array(draw(*shape)) for shape in ((5, 2, 3), (3, 4), (4, 4), (4,)))

    def cell(z, c):
        c = 0.5 * c + jnp.tanh(z)
        return jnp.sin(c), c

    def summed(x, w_ih, w_hh, b, recurrence, backward):
        return jnp.sum(jnp.sin(recurrence.run(cell, x, w_ih, w_hh, b, backward)))

    run = jax.jit(jax.value_and_grad(summed, (0, 1, 2, 3)), static_argnums=(4, 5))
    kinds = "scan", "hoisted", "checkpointed", "deferred"
    ways = [Recurrence(kind, unroll) for kind in kinds for unroll in (1, 2)]
    for backward in (False, True):
        results = [jax.tree.leaves(run(x, w_ih, w_hh, b, way, backward)) for way in ways]
        for result in results[1:]:
            for found, expected in zip(result, results[0], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11)
    forward = run(x, w_ih, w_hh, b, ways[0], False)
    assert not np.allclose(forward[0], results[0][0]), "The direction makes no difference."


def check_running_variance_is_unbiased_and_changes_only_in_training():
    """P-03, P-04."""
    tensors = {"bn.gamma": jnp.ones(2), "bn.beta": jnp.zeros(2), "bn.running_mean": jnp.zeros(2)}
    tensors["bn.running_var"] = jnp.ones(2)
    x = jnp.arange(8.0).reshape(4, 1, 1, 2)
    training = layers.Layers(tensors, True, layers.Choices())
    y = training.batch_norm("bn", x, epsilon=1e-5, momentum=0.1)
    np.testing.assert_allclose(np.asarray(y)[:, 0, 0, 0], np.array((-3, -1, 1, 3)) / np.sqrt(5 + 1e-5), rtol=1e-6)
    np.testing.assert_allclose(training.statistics["bn.running_mean"], (0.3, 0.4), rtol=1e-6)
    np.testing.assert_allclose(training.statistics["bn.running_var"], (1.566667, 1.566667), rtol=1e-6)
    inference = layers.Layers(tensors, False, layers.Choices())
    np.testing.assert_allclose(inference.batch_norm("bn", x, epsilon=0.0, momentum=0.1), x)
    assert not inference.statistics


def check_gradients_of_repeated_words_add_up_and_momentum_moves_absent_ones():
    """P-29, in float64: central differences for a word that occurs twice in every review; momentum updates it in later steps."""
    _, built, batch = trainer(precision="float64")
    batch["tokens"][:, 1] = batch["tokens"][:, 4] = 7
    placed = built.put(batch)
    _, _, gradients = built.gradients(placed)
    trained, fixed, _ = built.carry
    table, losses = trained["embedding.weight"], []
    for shift in (1e-5, -1e-5):
        shifted = {**trained, "embedding.weight": table.at[7, 2].add(shift)}
        losses.append(float(built._objective(shifted, fixed, placed)[0]))
    np.testing.assert_allclose(gradients["embedding.weight"][7, 2], (losses[0] - losses[1]) / 2e-5, rtol=1e-6)
    built.step(placed)
    before = built.state()["embedding.weight"]
    built.step(built.put({**batch, "tokens": np.where(batch["tokens"] == 7, 8, batch["tokens"])}))
    moved = built.state()["embedding.weight"][7] - before[7]
    np.testing.assert_allclose(moved, -0.1 * 0.9 * gradients["embedding.weight"][7], rtol=1e-9)


def check_a_frozen_embedding_is_unchanged_and_has_no_gradient():
    _, built, batch = trainer(sizes={**WORDS, "train_embedding": False})
    before = built.state()["embedding.weight"]
    built.step(built.put(batch))
    assert np.array_equal(built.state()["embedding.weight"], before)
    assert "embedding.weight" not in built.gradients(built.put(batch))[2]


def check_synchronise_waits_for_every_buffer():
    """A step returns before its work is done; after `synchronise` every buffer is ready."""
    _, built, batch = trainer("resnet18", {**IMAGES, "width": 32, "batch": 16})
    placed, early = built.put(batch), 0
    for _ in range(5):
        built.step(placed)
        early += not built.loss.is_ready()
        built.synchronise()
        assert all(leaf.is_ready() for leaf in jax.tree.leaves((built.carry, built.loss)))
    assert early, "Every step had finished when its call returned: JAX is no longer asynchronous here."


def check_a_step_donates_its_buffers_and_keeps_the_batch():
    _, built, batch = trainer()
    placed, before = built.put(batch), built.carry
    built.step(placed)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    assert not any(leaf.is_deleted() for leaf in placed.values())


def check_nothing_is_compiled_after_the_first_steps():
    for mode in ("jit", "no-jit"):
        adapter, built, batch = trainer(mode=mode)
        placed = built.put(batch)
        assert np.isfinite(built.losses([built.step(placed) for _ in range(2)])).all()
        first = adapter.compilations()
        handles = [built.step(placed) for _ in range(3)]
        built.synchronise()
        built.losses(handles)
        assert adapter.compilations() == first > 0, (mode, first, adapter.compilations())


def check_repeated_runs_are_bit_identical():
    runs = []
    for _ in range(2):
        _, built, batch = trainer("resnet18", IMAGES, deterministic=True)
        placed = built.put(batch)
        runs.append(built.losses([built.step(placed) for _ in range(5)]))
    assert np.array_equal(runs[0], runs[1])


def check_the_pipeline_keeps_the_order_of_the_run():
    adapter, built, _ = trainer()
    tokens = np.repeat(np.arange(20, dtype="i4")[:, None], WORDS["length"], axis=1)
    source = Source(Split({"tokens": tokens}, None), np.arange(20, dtype="i4").reshape(5, 4)[::-1])
    for workers in (0, 3):
        feed = adapter.pipeline(built, source, workers)
        found = [np.asarray(next(feed)["tokens"])[:, 0].tolist() for _ in range(12)]
        assert found == [source.batch(step)["tokens"][:, 0].tolist() for step in range(12)]
        feed.close()


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "jax").loss
    found = jax.jit(jax.value_and_grad(lambda logits, batch: loss({"logits": logits}, batch)))
    network.load(HERE, "ctc_golden").compare(found)


def check_settings_without_effect_are_reported():
    """A configuration that JAX does not apply, and formulations that are replaced by others."""
    before = jax.config.jax_disable_jit, jax.config.jax_enable_x64
    jax.config.update("jax_disable_jit", False)
    jax.config.update("jax_enable_x64", False)
    with mock.patch.object(jax.config, "update"):
        found = adapter_of("no-jit", precision="float64").applied()
    jax.config.update("jax_disable_jit", before[0])
    jax.config.update("jax_enable_x64", before[1])
    assert (found["mode"], found["precision"]) == ("jit", "float32"), found
    adapter = adapter_of(knobs={"convolution": "matmul", "recurrence": "deferred"})

    def library(x, kernel, strides, padding):
        return lax.conv_general_dilated(
            x, kernel, strides, [(p, p) for p in padding], dimension_numbers=convolution.LAYOUTS
        )

    with mock.patch.object(convolution, "by_matmul", library):
        assert adapter.applied()["convolution"] == "xla"
    with mock.patch.object(Recurrence, "resolved", lambda self, *_: replace(self, formulation="scan")):
        assert adapter.applied()["recurrence"] == "scan"


def check_dropout_has_its_rate_and_acts_in_training_only():
    state = {layers.RANDOM: jax.random.key(1)}

    def dropped(ones, rate):
        found = layers.Layers(dict(state), training=True, choices=layers.Choices(dropout=True))
        y = found.dropout(jnp.asarray(ones), rate)
        state.update(found.statistics)
        return y

    effects = network.load(HERE, "dropout_effects")
    effects.check_layer(dropped)
    off, on = (adapter_of(knobs={"dropout": each}) for each in ("off", "on"))
    effects.check_networks("jax", off, on, names=["vgg16"])


def check_dropout_without_effect_is_reported():
    adapter = adapter_of(knobs={"dropout": "on"})
    assert adapter.applied()["dropout"] == "on"
    with mock.patch.object(layers.Layers, "dropout", lambda _, x, rate: x):
        assert adapter.applied()["dropout"] == "off"


def check_recomputation_changes_nothing_but_memory():
    effects = network.load(HERE, "recomputation_effects")
    adapters = [adapter_of(precision="float64", knobs={"recomputation": each}) for each in ("none", "blocks")]
    effects.check_networks("jax", *adapters, names=("resnet18", "bert"))


def check_every_block_of_a_network_is_computed_again():
    effects = network.load(HERE, "recomputation_effects")
    for name in ("resnet18", "resnet50", "vgg16", "bert", "gnmt", "deepspeech2", "googlenet", "inceptionv3"):
        assert blocks_computed_again(name, effects.tiny(name), effects) == len(effects.described(name).blocks), name


def blocks_computed_again(name, sizes, effects):
    """Trace the forward pass of a network; return how many of its operations are blocks under `jax.checkpoint`."""
    described = effects.described(name)
    implementation = network.load_implementation(WORKLOADS / name, name, "jax")
    weights = {p.name: layouts.to_native(p.kind, np.zeros(p.shape, "f4"), "float32") for p in described.parameters}
    batch = {
        key: layouts.input_to_native(each, "float32")
        for key, each in effects.batch_of(described, sizes["batch"]).items()
    }

    def forward(tensors, batch):
        chosen = layers.Layers(tensors, True, layers.Choices(recomputation=True))
        return implementation.forward(chosen, sizes, batch), chosen.statistics

    shapes = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), (weights, batch))
    return sum(each.primitive.name in traced.CHECKPOINTS for each in jax.make_jaxpr(forward)(*shapes).jaxpr.eqns)


def check_recomputation_without_effect_is_reported():
    adapter = adapter_of(knobs={"recomputation": "blocks"})
    assert adapter.applied()["recomputation"] == "blocks"
    with mock.patch.object(jax, "checkpoint", lambda function, **_: function):
        assert adapter.applied()["recomputation"] == "none"
