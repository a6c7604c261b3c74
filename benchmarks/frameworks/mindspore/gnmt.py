"""GNMT v2 by MindSpore's LSTM."""

import mindspore
from mindspore import Parameter, nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.LSTM, nn.Embedding and nn.Dense; MindSpore's own GNMT is a script for "
    "Ascend, in no package"
)
DIFFERS = (
    "a second trainable bias in every LSTM; the first layer's backward direction starts in the padding: with lengths, "
    "nn.LSTM would not use its fused kernel"
)
MORE = 36_864
PAD, SMOOTHING = 0, 0.1


class Attention(nn.Cell):
    """Normalised Bahdanau attention over the whole target at once."""

    def __init__(self, hidden):
        super().__init__()
        self.query, self.key = nn.Dense(hidden, hidden, has_bias=False), nn.Dense(hidden, hidden)
        self.v = Parameter(ops.randn(hidden, 1))
        self.g = Parameter(ops.full((1,), hidden**-0.5, dtype=mindspore.float32))

    def construct(self, queries, keys, lengths):
        """Queries (N, T, H), keys (N, S, H), lengths (N,) -> contexts (N, T, H)."""
        sums = ops.expand_dims(self.query(queries), 2) + ops.expand_dims(self.key(keys), 1)
        scores = ops.matmul(ops.tanh(sums), self.v * (self.g / ops.sqrt(ops.sum(self.v * self.v)))).squeeze(3)
        beyond = ops.arange(keys.shape[1]).reshape(1, 1, -1) >= lengths.reshape(-1, 1, 1)
        return ops.bmm(ops.softmax(ops.masked_fill(scores, beyond, -1e9), -1), keys)


class Translator(nn.Cell):
    """Source, its lengths, target -> scores of the target's next words (N, T - 1, vocabulary)."""

    def __init__(self, sizes):
        super().__init__()
        vocabulary, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]

        def lstm(width, **more):
            return nn.LSTM(width, hidden, batch_first=True, **more)

        self.embedding = nn.Embedding(vocabulary, hidden)
        inner = [lstm(2 * hidden if number == 1 else hidden) for number in range(1, layers)]
        self.encoder = nn.CellList([lstm(hidden, bidirectional=True), *inner])
        self.decoder = nn.CellList([lstm(hidden), *(lstm(2 * hidden) for _ in range(1, layers))])
        self.attention = Attention(hidden)
        self.classifier = nn.Dense(hidden, vocabulary)
        self.layers = layers

    def construct(self, source, lengths, target):
        """Run all layers, with residuals from the third layer on."""
        x = self.encoder[0](self.embedding(source))[0]
        for number in range(1, self.layers):
            y = self.encoder[number](x)[0]
            x = x + y if number > 1 else y
        keys, x = x, self.decoder[0](self.embedding(target[:, :-1]))[0]
        context = self.attention(x, keys, lengths)
        for number in range(1, self.layers):
            y = self.decoder[number](ops.concat((x, context), 2))[0]
            x = x + y if number > 1 else y
        return self.classifier(x)


def model(sizes):
    """Return the network."""
    return Translator(sizes)


def inputs(batch):
    """Source, its lengths, target."""
    return batch["source"], batch["source_length"], batch["target"]


def targets(batch):
    """Target."""
    return (batch["target"],)


class Loss(nn.Cell):
    """Cross-entropy with smoothed labels, summed over words without padding, divided by the number of sentences."""

    def construct(self, logits, target):
        """Scores and target -> scalar loss."""
        labels = target[:, 1:].reshape(-1)
        total = ops.cross_entropy(
            logits.reshape(-1, logits.shape[2]), labels, ignore_index=PAD, reduction="sum", label_smoothing=SMOOTHING
        )
        return total / logits.shape[0]


def loss():
    """Return the smoothed cross-entropy."""
    return Loss()
