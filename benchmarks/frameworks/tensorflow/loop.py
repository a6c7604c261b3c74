"""TensorFlow as a user would write it by hand: a bare loop around our objects, and a Keras model in a custom training loop.

A reference file has `model(sizes)`, a Keras model; `inputs(batch)`, its arguments as NumPy arrays; and
`loss(outputs, batch)`, of the model's outputs and the canonical batch.
"""

# Kinds of variables that may be excluded from weight decay: end of the name here -> canonical last names.
EXCLUDABLE = {"bias": {"bias", "b"}, "gamma": {"gamma"}, "beta": {"beta"}}


def bare_loop(trainer, batch, steps):
    """The loop of TensorFlow's guide to custom training, with the trainer's compiled step."""
    train_step = trainer.train_step
    for _ in range(steps):
        train_step(batch)


def reference(module, sizes, optimizer, batch):
    """Return (step, synchronise, count): Keras' guide "Writing a training loop from scratch", step in a `tf.function`."""
    import tensorflow as tf

    model = module.model(sizes)
    variables = model.trainable_variables
    rule = update_rule(optimizer)
    rule.build(variables)
    x = tf.nest.map_structure(tf.constant, module.inputs(batch))
    y = {name: tf.constant(array) for name, array in batch.items()}

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = module.loss(model(x, training=True), y)
        rule.apply(tape.gradient(loss, variables), variables)
        return loss

    count = sum(variable.shape.num_elements() for variable in variables)
    return lambda: train_step(x, y), tf.test.experimental.sync_devices, count


def update_rule(optimizer):
    """Keras' own optimizer, with its own clipping and weight decay; the decay is decoupled in every rule."""
    import keras

    common = {"global_clipnorm": optimizer["clip"] or None, "weight_decay": optimizer["weight_decay"] or None}
    if optimizer["name"] == "sgd":
        constants = {name: optimizer[name] for name in ("momentum", "nesterov")}
        rule = keras.optimizers.SGD(optimizer["learning_rate"], **constants, **common)
    else:
        constants = {f"beta_{number}": optimizer[f"beta{number}"] for number in (1, 2)}
        kind = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW}[optimizer["name"]]
        common["weight_decay"] = common["weight_decay"] or (0.0 if optimizer["name"] == "adamw" else None)
        rule = kind(optimizer["learning_rate"], epsilon=optimizer["epsilon"], **constants, **common)
    endings = {name.rpartition(".")[2] for name in optimizer["decay"]}
    excluded = [name for name, ours in EXCLUDABLE.items() if not endings & ours]
    if excluded:
        rule.exclude_from_weight_decay(var_names=excluded)
    return rule
