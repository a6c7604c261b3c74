"""Deep Speech 2 (Amodei et al. 2016, arXiv 1512.02595) as in SeanNaren/deepspeech.pytorch, in canonical form.

Two convolutions over (frequency, time), bidirectional LSTMs whose directions are summed, CTC over 29 classes of which 0 is
the blank. Convolutions are bias-free and followed by batch norm (epsilon 1e-5, weight of the new statistic 0.1, over all
positions, padded ones included) and a clip to 0..20; after each, frames after the end of an utterance are set to zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.network import Adversarial, Input, Network, Parameter, batch_norm
from steelyard_worker.sizes import at_least

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.batches import Batch

    Ints = np.ndarray[Any, np.dtype[np.int32]]

# (kernel, stride, padding), each (frequency, time).
CONVOLUTIONS = (((41, 11), (2, 2), (20, 5)), ((21, 11), (2, 1), (10, 5)))
# A typical utterance: 180 letters in the 635 output frames of 12.7 seconds.
LETTERS_PER_FRAME = 180 / 635


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: bins, frames (of the input), transcript (maximal number of letters), channels, hidden, layers, classes, batch."""
    at_least(sizes, "classes", 2)
    parameters, macs, stored, channels = list[Parameter](), 0, 0, 1
    bins, frames = sizes["bins"], sizes["frames"]
    for number, (kernel, stride, padding) in enumerate(CONVOLUTIONS, 1):
        out, name = sizes["channels"], f"conv{number}"
        parameters.append(Parameter(f"{name}.conv.weight", (out, channels, *kernel), "conv", "lecun_uniform_in"))
        parameters += batch_norm(f"{name}.bn", out)
        bins = (bins + 2 * padding[0] - kernel[0]) // stride[0] + 1
        frames = (frames + 2 * padding[1] - kernel[1]) // stride[1] + 1
        macs += parameters[-5].count * bins * frames
        stored += 4 * out * bins * frames  # of convolution, batch norm, clip and mask
        channels = out
    width, hidden = channels * bins, sizes["hidden"]
    for layer in range(1, sizes["layers"] + 1):
        parameters += batch_norm(f"rnn{layer}.bn", width) if layer > 1 else ()
        for direction in ("forward", "backward"):
            parameters += _lstm(f"rnn{layer}.{direction}", width, hidden)
            macs += frames * 4 * hidden * (width + hidden)
            stored += frames * (7 * hidden + width)  # gates, states, input
        width = hidden
    parameters += batch_norm("head.bn", hidden)
    parameters.append(Parameter("head.dense.weight", (sizes["classes"], hidden), "dense", "lecun_uniform_in"))
    macs += frames * sizes["classes"] * hidden
    # Activations beyond the clip, saturated gates, gradients beyond the limit of their norm. The second convolution gets smaller
    # weights, so that the variance of its output is as small as usual: over padding, a sum of equal squares loses precision.
    factors = {"conv*.gamma": 8.0, "rnn*.gamma": 4.0, "conv2.conv.weight": 0.125}
    adversarial = Adversarial(_draw_adversarial(sizes), factors=factors, clip=1.0)
    recurrent = tuple(f"rnn{layer}" for layer in range(1, sizes["layers"] + 1))
    return Network(
        tuple(parameters),
        _inputs(sizes),
        macs,
        stored,
        frames,
        draw=_draw(sizes, _mostly_full),
        draw_set=_draw(sizes, _varied),
        predictions=predictions,
        adversarial=adversarial,
        probes=("conv1", "conv2", *recurrent),
        blocks=recurrent,
        likelihood=True,
        loop_reads=2 * sizes["layers"] * frames * 4 * hidden**2,
    )


def output_length(frames: Any) -> Any:
    """Return the number of output frames for a number of input frames; only the first convolution reduces it."""
    return (frames + 10 - 11) // 2 + 1


def predictions(outputs: Batch, batch: Batch) -> Batch:
    """Return frames int8 (N, T'), the best class of every output frame; lengths (N,); transcript (N, L), 0 after its end."""
    return {
        "frames": outputs["logits"].argmax(axis=-1).astype(np.int8),
        "lengths": output_length(batch["frames"]),
        "transcript": batch["transcript"],
    }


def _inputs(sizes: dict[str, Any]) -> tuple[Input, ...]:
    return (
        # Transcripts stay padded: only the loss reads them, and cutting them would multiply the number of shapes.
        Input("spectrogram", (1, sizes["bins"], sizes["frames"]), "float32", lengths={2: "frames"}),
        Input("frames", (), "int32", high=sizes["frames"] + 1),
        Input("transcript", (sizes["transcript"],), "int32", high=sizes["classes"]),
        Input("transcript_length", (), "int32", high=sizes["transcript"] + 1),
    )


def _lstm(name: str, width: int, hidden: int) -> list[Parameter]:
    bound = f"uniform:{hidden**-0.5}"
    return [
        Parameter(f"{name}.w_ih", (4 * hidden, width), "lstm_w_ih", bound),
        Parameter(f"{name}.w_hh", (4 * hidden, hidden), "lstm_w_hh", bound),
        Parameter(f"{name}.b", (4 * hidden,), "lstm_b", bound),
    ]


def _mostly_full(generator: np.random.Generator, count: int, longest: int) -> Ints:
    """Return lengths of a batch: every other utterance has full length, the rest at least half, as real ones do."""
    found = generator.integers(longest // 2, longest + 1, count, dtype=np.int32)
    found[::2] = longest
    return found


def _varied(generator: np.random.Generator, count: int, longest: int) -> Ints:
    """Return lengths of a data set: all from a quarter of the full length to all of it are equally likely."""
    return generator.integers(max(1, longest // 4), longest + 1, count, dtype=np.int32)


def _draw(
    sizes: dict[str, Any], lengths: Callable[[np.random.Generator, int, int], Ints]
) -> Callable[[np.random.Generator, int], Batch]:
    """Return a function that makes batches of utterances with such lengths."""

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        longest, most = sizes["frames"], sizes["transcript"]
        frames = lengths(generator, batch, longest)
        letters = np.clip(np.round(output_length(frames) * LETTERS_PER_FRAME), 1, most).astype(np.int32)
        spectrogram = generator.standard_normal((batch, 1, sizes["bins"], longest), np.float32)
        spectrogram *= np.arange(longest) < frames[:, None, None, None]
        transcript = generator.integers(1, sizes["classes"], (batch, most), dtype=np.int32)
        transcript *= np.arange(most) < letters[:, None]
        return {
            "spectrogram": spectrogram,
            "frames": frames,
            "transcript": transcript,
            "transcript_length": letters,
        }

    return draw


def _draw_adversarial(sizes: dict[str, Any]) -> Callable[[np.random.Generator, int], Batch]:
    """Return a function that makes batches of four kinds of utterances in turn.

    All of them say one letter again and again, so that every two need a blank between them. The first is of full length and has
    the longest transcript that can be aligned. In the second the letters fit, but not the blanks between them; in the third not
    even the letters. The fourth has one frame and one letter. Spectrograms are not zero after the end: sums over a constant
    lose more precision than the rest of the network.
    """

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        longest, most, kind = sizes["frames"], sizes["transcript"], np.arange(batch) % 4
        whole = min(most, (output_length(longest) + 1) // 2)
        letters = np.array([whole, whole, whole, 1])[kind].astype(np.int32)
        # For n output frames, 2 n - 1 input frames: one too few for letters and blanks, or for the letters.
        frames = np.array([longest, 4 * whole - 5, max(1, 2 * whole - 3), 1])[kind].astype(np.int32)
        spectrogram = generator.standard_normal((batch, 1, sizes["bins"], longest), np.float32)
        transcript = np.where(
            np.arange(most) < letters[:, None], generator.integers(1, sizes["classes"], (batch, 1)), 0
        )
        return {
            "spectrogram": spectrogram,
            "frames": frames,
            "transcript": transcript.astype(np.int32),
            "transcript_length": letters,
        }

    return draw
