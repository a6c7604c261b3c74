"""A checkpoint of TensorFlow is read exactly, beside an optimizer too; one that does not fit is refused."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import tensorflow as tf

from checks import weight_files
from checks.weight_files import NETWORK
from steelyard_worker.frameworks.tensorflow import checkpoint, layouts
from steelyard_worker.frameworks.tensorflow.layers import Variables

KINDS = {each.name: each.kind for each in NETWORK.parameters}


def build(sizes, variables):
    """Make the variables of the network that the checks share, in TensorFlow's layouts."""
    for name, array in weight_files.drawn().items():
        variables.new(name, *layouts.native(KINDS[name], array).shape)


def read(path):
    """Return the tensors of a checkpoint."""
    return checkpoint.read(Variables(tf.float32), SimpleNamespace(build=build), {}, NETWORK, path)


def trained(values):
    """Return variables with these values."""
    variables = Variables(tf.float32)
    build({}, variables)
    for name, array in values.items():
        variables.named[name].assign(layouts.native(KINDS[name], array))
    return variables.named


def save(values, path):
    """Write a checkpoint of the variables alone."""
    tf.train.Checkpoint(**trained(values)).write(str(path.with_suffix("")))


def check_a_checkpoint_is_read_exactly():
    weight_files.check_exact(read, save, "w.index")


def check_a_checkpoint_with_a_counter_and_an_optimizer_is_read_exactly():
    def with_more(values, path):
        state = tf.Module()
        state.momenta = [tf.Variable(array) for array in values.values()]
        kept = tf.train.Checkpoint(network=trained(values), optimizer=state)
        written = Path(kept.save(str(path.with_suffix(""))))  # adds a number to the name, and a counter to the content
        written.with_name(f"{written.name}.index").rename(path)
        values_file = written.with_name(f"{written.name}.data-00000-of-00001")
        values_file.rename(path.with_name(f"{path.stem}.data-00000-of-00001"))

    weight_files.check_exact(read, with_more, "w.index")


def check_a_damaged_file_gets_a_sentence():
    weight_files.check_damaged(read, save, "w.index")
    weight_files.check_damaged(read, save, "w.index", "w.data-00000-of-00001")


def check_names_are_strict():
    with TemporaryDirectory() as folder:
        path, named = Path(folder) / "w.index", trained(weight_files.drawn())
        tf.train.Checkpoint(**{name.replace("head", "fc"): each for name, each in named.items()}).write(f"{folder}/w")
        sentence = weight_files.refused(read, path)
        assert sentence.startswith("w.index does not fit the implementation in TensorFlow. It lacks 'head.weight'")
        assert "It has 'fc.weight' and 'fc.bias'" in sentence or "It has 'fc.bias' and 'fc.weight'" in sentence
