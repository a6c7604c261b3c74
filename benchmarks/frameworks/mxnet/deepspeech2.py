"""Deep Speech 2 by Gluon's fused LSTM and CTC."""

from mxnet import gluon
from mxnet.gluon import nn

SOURCE = (
    "written by hand from mxnet 1.9.1's gluon.nn.Conv2D, BatchNorm, gluon.rnn.LSTM and gluon.loss.CTCLoss; MXNet's "
    "own example uses the symbolic interface, and no package has one"
)
DIFFERS = (
    "a second trainable bias in every LSTM; backward directions start in the padding, because the fused "
    "operator uses lengths only with cuDNN; the blank is the last class; biased running "
    "variances"
)
MORE = 40_960


class SequenceNorm(gluon.HybridBlock):
    """Batch norm over the features of (T, N, width)."""

    def __init__(self, width):
        super().__init__()
        with self.name_scope():
            self.norm = nn.BatchNorm(in_channels=width)

    def hybrid_forward(self, F, x):
        """Normalise over all positions."""
        return F.reshape_like(self.norm(F.reshape(x, (-3, 0))), x)


class Speech(gluon.HybridBlock):
    """Spectrograms (N, 1, F, T) and their lengths (N,) -> logits (T', N, classes)."""

    def __init__(self, sizes):
        super().__init__()
        channels, self.hidden, self.steps = sizes["channels"], sizes["hidden"], (sizes["frames"] + 1) // 2
        with self.name_scope():
            self.conv1 = nn.Conv2D(channels, (41, 11), (2, 2), (20, 5), use_bias=False, in_channels=1)
            self.norm1 = nn.BatchNorm(in_channels=channels)
            self.conv2 = nn.Conv2D(channels, (21, 11), (2, 1), (10, 5), use_bias=False, in_channels=channels)
            self.norm2 = nn.BatchNorm(in_channels=channels)
            self.norms, self.lstms = nn.HybridSequential(), nn.HybridSequential()
            width = channels * -(-sizes["bins"] // 4)
            for layer in range(sizes["layers"]):
                self.norms.add(SequenceNorm(self.hidden) if layer else nn.HybridLambda("identity"))
                self.lstms.add(gluon.rnn.LSTM(self.hidden, bidirectional=True, input_size=width))
                width = self.hidden
            self.norm = SequenceNorm(self.hidden)
            self.dense = nn.Dense(sizes["classes"], use_bias=False, flatten=False, in_units=self.hidden)

    def hybrid_forward(self, F, spectrogram, frames):
        """Frames after an utterance's end are zero after each convolution; directions are summed."""
        lengths = F.floor((frames + 1) / 2)
        places = F.reshape(F.arange(0, self.steps), (1, 1, 1, -1))
        inside = F.broadcast_lesser(places, F.reshape(lengths, (-1, 1, 1, 1)))
        x = F.broadcast_mul(F.clip(self.norm1(self.conv1(spectrogram)), 0.0, 20.0), inside)
        x = F.broadcast_mul(F.clip(self.norm2(self.conv2(x)), 0.0, 20.0), inside)
        x = F.transpose(x, (3, 0, 1, 2))
        x = F.reshape(x, (0, 0, -3))
        for norm, lstm in zip(self.norms, self.lstms, strict=True):
            x = F.sum(F.reshape(lstm(norm(x)), (0, 0, 2, self.hidden)), axis=2)
            x = F.SequenceMask(x, lengths, use_sequence_length=True)
        return self.dense(self.norm(x))


def model(sizes):
    """Return the network."""
    return Speech(sizes)


def inputs(batch):
    """Spectrograms and their lengths."""
    return batch["spectrogram"], batch["frames"]


def targets(batch):
    """Letters from 0, -1 after the end; lengths of the outputs and of the transcripts."""
    return batch["transcript"] - 1, (batch["frames"] + 1) // 2, batch["transcript_length"]


class Loss(gluon.HybridBlock):
    """CTC, summed over the batch and divided by its size."""

    def __init__(self):
        super().__init__()
        self.ctc = gluon.loss.CTCLoss("TNC")

    def hybrid_forward(self, F, logits, transcript, lengths, letters):
        """Logits and targets -> scalar loss."""
        return F.mean(self.ctc(logits, transcript, lengths, letters))


def loss():
    """Return the CTC loss."""
    return Loss()
