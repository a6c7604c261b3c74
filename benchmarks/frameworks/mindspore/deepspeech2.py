"""Deep Speech 2 by MindSpore's LSTM and CTC."""

from mindspore import nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.Conv2d, BatchNorm2d, BatchNorm1d, LSTM and CTCLoss; MindSpore's own "
    "DeepSpeech2 is a script, in no package"
)
DIFFERS = (
    "a second trainable bias in every LSTM; backward directions start in the padding: with lengths, nn.LSTM would "
    "not use its fused kernel"
)
MORE = 40_960


class SequenceNorm(nn.Cell):
    """Batch norm over the features of (T, N, width), over all positions."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, eps=1e-5, momentum=0.9)

    def construct(self, x):
        """Normalise (T, N, width) as one matrix (T * N, width)."""
        return self.norm(x.reshape(-1, x.shape[2])).reshape(x.shape)


class Speech(nn.Cell):
    """Spectrograms (N, 1, F, T) and their lengths (N,) -> logits (T', N, classes)."""

    def __init__(self, sizes):
        super().__init__()
        channels, hidden = sizes["channels"], sizes["hidden"]
        self.conv1 = nn.Conv2d(1, channels, (41, 11), (2, 2), pad_mode="pad", padding=(20, 20, 5, 5))
        self.conv2 = nn.Conv2d(channels, channels, (21, 11), (2, 1), pad_mode="pad", padding=(10, 10, 5, 5))
        self.norm1, self.norm2 = (nn.BatchNorm2d(channels, eps=1e-5, momentum=0.9) for _ in range(2))
        widths = [channels * -(-sizes["bins"] // 4)] + [hidden] * (sizes["layers"] - 1)
        self.norms = nn.CellList(
            [SequenceNorm(width) if layer else nn.Identity() for layer, width in enumerate(widths)]
        )
        self.lstms = nn.CellList([nn.LSTM(width, hidden, bidirectional=True) for width in widths])
        self.norm, self.dense = SequenceNorm(hidden), nn.Dense(hidden, sizes["classes"], has_bias=False)
        self.layers = sizes["layers"]

    def construct(self, spectrogram, frames):
        """Frames after an utterance's end are zero after each layer; directions are summed."""
        lengths = (frames + 1) // 2
        steps = (spectrogram.shape[3] + 1) // 2
        inside = ops.cast(ops.arange(steps).reshape(1, -1) < lengths.reshape(-1, 1), spectrogram.dtype)
        mask = inside.reshape(inside.shape[0], 1, 1, -1)
        x = ops.clamp(self.norm1(self.conv1(spectrogram)), 0.0, 20.0) * mask
        x = ops.clamp(self.norm2(self.conv2(x)), 0.0, 20.0) * mask
        x = ops.transpose(x, (3, 0, 1, 2))
        x = x.reshape(x.shape[0], x.shape[1], -1)
        step_mask = ops.expand_dims(inside.T, 2)
        for number in range(self.layers):
            onward, back = ops.chunk(self.lstms[number](self.norms[number](x))[0], 2, 2)
            x = (onward + back) * step_mask
        return self.dense(self.norm(x))


def model(sizes):
    """Return the network."""
    return Speech(sizes)


def inputs(batch):
    """Spectrograms and their lengths."""
    return batch["spectrogram"], batch["frames"]


def targets(batch):
    """Transcripts, lengths of the outputs, and lengths of the transcripts."""
    return batch["transcript"], (batch["frames"] + 1) // 2, batch["transcript_length"]


class Loss(nn.Cell):
    """CTC, blank 0, summed over the batch and divided by its size."""

    def __init__(self):
        super().__init__()
        self.ctc = nn.CTCLoss(blank=0, reduction="none", zero_infinity=True)

    def construct(self, logits, transcript, lengths, letters):
        """Logits and targets -> scalar loss."""
        return ops.mean(self.ctc(ops.log_softmax(logits, -1), transcript, lengths, letters))


def loss():
    """Return the CTC loss."""
    return Loss()
