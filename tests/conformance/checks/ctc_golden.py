"""Reference values of CTC in NumPy: golden losses, and losses and gradients by enumeration of all paths of a few frames.

The golden losses are 1.3780013 and 1.1788015 for logits sin(6t + 3n + c), labels (1, 2) and (1): the CTC functions of four
frameworks agree with them to 1e-6.
"""

from itertools import groupby, product

import numpy as np

T, N, C = np.meshgrid(range(4), range(2), range(3), indexing="ij")
LOGITS = np.sin(6 * T + 3 * N + C).transpose(1, 0, 2).astype(np.float32)
GOLDEN = (1.3780013 + 1.1788015) / 2


def cases():
    """Yield (batch, loss, gradient): full lengths, a shorter second utterance, equal labels, labels that do not fit."""
    for frames, transcript in (
        ((8, 8), ((1, 2), (1, 0))),
        ((7, 6), ((1, 2), (1, 0))),
        ((8, 5), ((2, 2), (2, 2))),
        ((8, 4), ((1, 2), (1, 1))),
        ((8, 2), ((1, 2), (2, 1))),
    ):
        batch = {
            "frames": np.array(frames, np.int32),
            "transcript": np.array(transcript, np.int32),
            "transcript_length": np.count_nonzero(transcript, axis=1).astype(np.int32),
        }
        yield batch, *by_enumeration(LOGITS.astype(np.float64), batch)


def by_enumeration(logits, batch):
    """Return (loss, gradient): every path of every utterance is enumerated, collapsed and compared with the labels."""
    scores = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    loss, gradient = 0.0, np.zeros_like(logits)
    for n, labels in enumerate(batch["transcript"].tolist()):
        length = (int(batch["frames"][n]) + 1) // 2
        wanted, steps = [label for label in labels if label], np.arange(length)
        seen, total = np.zeros((length, logits.shape[2])), 0.0
        for path in product(range(logits.shape[2]), repeat=length):
            if [label for label, _ in groupby(path) if label] == wanted:
                probability = np.exp(scores[n, steps, path].sum())
                seen[steps, path] += probability
                total += probability
        if total:
            loss -= np.log(total) / len(logits)
            gradient[n, :length] = (np.exp(scores[n, :length]) - seen / total) / len(logits)
    return loss, gradient


def compare(loss_and_gradient):
    """Compare a function (logits, batch) -> (loss, gradient of the logits) with the values of all cases."""
    for number, (batch, loss, gradient) in enumerate(cases()):
        found = loss_and_gradient(LOGITS, batch)
        assert number or abs(float(found[0]) - GOLDEN) < 1e-6, (float(found[0]), GOLDEN)
        np.testing.assert_allclose(found[0], loss, rtol=1e-6, err_msg=f"loss of case {number}")
        np.testing.assert_allclose(found[1], gradient, atol=5e-7, err_msg=f"gradient of case {number}")
