"""BERT pre-training from MindSpore's dense layers, as in its model zoo's program for Ascend."""

import mindspore
from mindspore import Parameter, nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.Dense, nn.LayerNorm and nn.Embedding, like MindSpore's own BERT, a script in "
    "no package; a graph of twelve nn.TransformerEncoderLayer does not compile within 24 GiB, and mindnlp 0.5 patches Hugging "
    "Face transformers, which needs PyTorch's interface and thirty packages"
)
DIFFERS = ""


class Layer(nn.Cell):
    """Self-attention and two dense layers, each with its residual and layer norm: (N, T, hidden) and an additive mask."""

    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.heads, self.width = heads, hidden // heads
        self.query, self.key, self.value, self.out = (nn.Dense(hidden, hidden) for _ in range(4))
        self.up, self.down = (
            nn.Dense(hidden, intermediate, activation=nn.GELU(approximate=False)),
            nn.Dense(intermediate, hidden),
        )
        self.norm, self.last_norm = (nn.LayerNorm((hidden,), epsilon=1e-12) for _ in range(2))

    def split(self, x):
        """(N, T, hidden) -> (N, heads, T, width)."""
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.width).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        scores = ops.matmul(self.split(self.query(x)), self.split(self.key(x)).transpose(0, 1, 3, 2)) / self.width**0.5
        read = ops.matmul(ops.softmax(scores + mask), self.split(self.value(x))).transpose(0, 2, 1, 3)
        x = self.norm(x + self.out(read.reshape(x.shape)))
        return self.last_norm(x + self.down(self.up(x)))


class Bert(nn.Cell):
    """Tokens of two sentences -> scores of the masked words, and of the next sentence."""

    def __init__(self, sizes):
        super().__init__()
        hidden = sizes["hidden"]
        self.words = nn.Embedding(sizes["vocabulary"], hidden)
        self.positions = nn.Embedding(sizes["positions"], hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm((hidden,), epsilon=1e-12)
        layers = [Layer(hidden, sizes["heads"], sizes["intermediate"]) for _ in range(sizes["layers"])]
        self.layers = nn.CellList(layers)
        self.pooler = nn.Dense(hidden, hidden, activation="tanh")
        self.transform = nn.Dense(hidden, hidden)
        self.words_norm = nn.LayerNorm((hidden,), epsilon=1e-12)
        self.words_bias = Parameter(ops.zeros(sizes["vocabulary"], mindspore.float32))
        self.next = nn.Dense(hidden, 2)

    def construct(self, ids, mask, segments, places):
        """Ids, mask and segments (N, T), masked positions (N, M)."""
        x = self.words(ids) + self.positions.embedding_table[: ids.shape[1]] + self.segments(segments)
        x = self.norm(x)
        outside = (1 - mask.astype(x.dtype))[:, None, None, :] * -1e4
        for layer in self.layers:
            x = layer(x, outside)
        chosen = ops.gather(x, places, 1, 1)
        chosen = self.words_norm(ops.gelu(self.transform(chosen)))
        words = ops.matmul(chosen, self.words.embedding_table.T) + self.words_bias
        return words, self.next(self.pooler(x[:, 0]))


def model(sizes):
    """Return the network; its GELU is exact."""
    if sizes["gelu"] != "erf":
        raise SystemExit("This reference has the exact GELU only.")
    return Bert(sizes)


def inputs(batch):
    """Words, mask, segments, masked positions."""
    return tuple(batch[name] for name in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions"))


def targets(batch):
    """Masked words with their weights, and next sentences."""
    return tuple(batch[name] for name in ("masked_lm_ids", "masked_lm_weights", "next_sentence_label"))


class Loss(nn.Cell):
    """Weighted mean over all masked words of the batch, plus the mean over its next sentences."""

    def __init__(self):
        super().__init__()
        self.each = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    def construct(self, words, following, ids, weights, label):
        """Outputs and targets -> scalar loss."""
        surprise, weights = self.each(words.reshape(-1, words.shape[2]), ids.reshape(-1)), weights.reshape(-1)
        return ops.sum(surprise * weights) / (ops.sum(weights) + 1e-5) + ops.mean(self.each(following, label))


def loss():
    """Return the loss of both tasks."""
    return Loss()
