"""GNMT v2 by Gluon's fused LSTM."""

from mxnet import gluon
from mxnet.gluon import nn, rnn

SOURCE = (
    "written by hand from mxnet 1.9.1's gluon.rnn.LSTM, gluon.nn.Embedding and Dense; GluonNLP's GNMT is a script "
    "outside its package, and unrolls cells"
)
DIFFERS = (
    "a second trainable bias in every LSTM; the first layer's backward direction starts in the padding, because the fused "
    "operator uses lengths only with cuDNN"
)
MORE = 36_864
PAD, SMOOTHING = 0, 0.1


class Attention(gluon.HybridBlock):
    """Normalised Bahdanau attention over the whole target at once."""

    def __init__(self, hidden):
        super().__init__()
        with self.name_scope():
            self.query = nn.Dense(hidden, use_bias=False, flatten=False, in_units=hidden)
            self.key = nn.Dense(hidden, flatten=False, in_units=hidden)
            self.v = self.params.get("v", shape=(1, hidden))
            self.g = self.params.get("g", shape=(1,), init="ones")

    def hybrid_forward(self, F, queries, keys, lengths, v, g):
        """Queries (T, N, H), keys (S, N, H), lengths (N,) -> contexts (T, N, H)."""
        values = F.swapaxes(keys, 0, 1)
        query = F.swapaxes(self.query(queries), 0, 1)
        sums = F.broadcast_add(F.expand_dims(query, 2), F.expand_dims(self.key(values), 1))
        direction = F.reshape(F.broadcast_mul(F.L2Normalization(v), F.expand_dims(g, 1)), (-1,))
        ahead = F.broadcast_like(F.expand_dims(lengths, 1), query, lhs_axes=(1,), rhs_axes=(1,))
        weights = F.softmax(F.dot(F.tanh(sums), direction), F.cast(ahead, "int32"), use_length=True)
        return F.swapaxes(F.batch_dot(weights, values), 0, 1)


class Translator(gluon.HybridBlock):
    """Source, its lengths, target -> scores of the target's next words (N, T - 1, vocabulary)."""

    def __init__(self, sizes):
        super().__init__()
        vocabulary, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]
        with self.name_scope():
            self.embedding = nn.Embedding(vocabulary, hidden)
            self.ends = rnn.LSTM(hidden, bidirectional=True, input_size=hidden)
            self.encoder, self.decoder = nn.HybridSequential(), nn.HybridSequential()
            for number in range(1, layers):
                self.encoder.add(rnn.LSTM(hidden, input_size=2 * hidden if number == 1 else hidden))
                self.decoder.add(rnn.LSTM(hidden, input_size=2 * hidden))
            self.query = rnn.LSTM(hidden, input_size=hidden)
            self.attention = Attention(hidden)
            self.classifier = nn.Dense(vocabulary, flatten=False, in_units=hidden)

    def hybrid_forward(self, F, source, source_length, target):
        """Compute with time-major sequences."""
        x = self.ends(self.embedding(F.transpose(source)))
        for number, lstm in enumerate(self.encoder):
            x = lstm(x) + x if number else lstm(x)
        given = F.slice_axis(F.transpose(target), axis=0, begin=0, end=-1)
        keys, x = x, self.query(self.embedding(given))
        context = self.attention(x, keys, source_length)
        for number, lstm in enumerate(self.decoder):
            y = lstm(F.concat(x, context, dim=2))
            x = x + y if number else y
        return self.classifier(F.swapaxes(x, 0, 1))


def model(sizes):
    """Return the network."""
    return Translator(sizes)


def inputs(batch):
    """Source, its lengths, target."""
    return batch["source"], batch["source_length"], batch["target"]


def targets(batch):
    """Target."""
    return (batch["target"],)


class Loss(gluon.HybridBlock):
    """Cross-entropy with smoothed labels, summed over words without padding, divided by the number of sentences."""

    def hybrid_forward(self, F, logits, target):
        """Scores and target -> scalar loss."""
        labels = F.slice_axis(target, axis=1, begin=1, end=None)
        scores = F.log_softmax(logits, axis=-1)
        each = (SMOOTHING - 1) * F.pick(scores, labels, axis=-1) - SMOOTHING * F.mean(scores, axis=-1)
        return F.mean(F.sum(each * (labels != PAD), axis=1))


def loss():
    """Return the smoothed cross-entropy."""
    return Loss()
