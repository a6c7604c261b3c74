"""Sentiment classification by MindSpore's LSTM, as in its tutorial."""

from mindspore import nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.Embedding, nn.LSTM and nn.Dense, as in its tutorial on sentiment "
    "classification"
)
DIFFERS = "a second trainable bias in every LSTM"
MORE = 512


class Sentiment(nn.Cell):
    """Embedding, LSTM, dense layer on the last step, or on the first and the last."""

    def __init__(self, sizes):
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
        self.embedding.embedding_table.requires_grad = sizes["train_embedding"]
        self.lstm = nn.LSTM(
            sizes["embedding"], sizes["hidden"], sizes["layers"], batch_first=True, bidirectional=sizes["bidirectional"]
        )
        self.both_ends = sizes["readout"] == "first+last"
        features = sizes["hidden"] * (2 if sizes["bidirectional"] else 1) * (2 if self.both_ends else 1)
        self.head = nn.Dense(features, sizes["classes"])

    def construct(self, tokens):
        """Indices (N, T) -> logits."""
        steps, _ = self.lstm(self.embedding(tokens))
        return self.head(ops.concat((steps[:, 0], steps[:, -1]), 1) if self.both_ends else steps[:, -1])


def model(sizes):
    """Return the network."""
    return Sentiment(sizes)


def inputs(batch):
    """Word indices."""
    return (batch["tokens"],)


def targets(batch):
    """Labels."""
    return (batch["label"],)


def loss():
    """Mean softmax cross-entropy from logits."""
    return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
