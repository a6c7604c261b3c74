"""Words that depend on the task: a training consists of steps, an inference of batches."""

from steelyard_worker.case import INFERENCE, TRAINING

WORDS = {
    TRAINING: {
        "task": "training",
        "step": "step",
        "steps": "steps",
        "per_step": "step",
        "a_step": "a step",
        "uncounted": "training and warm-up",
        "building": "building the network and its optimizer",
    },
    INFERENCE: {
        "task": "inference",
        "step": "batch",
        "steps": "batches",
        "per_step": "time per batch",
        "a_step": "a batch",
        "uncounted": "warm-up",
        "building": "building the network",
    },
}
"""{task: {placeholder: words}}."""


def fill(text: str, task: str) -> str:
    """Return a text with its placeholders, such as {step}, replaced by the words of a task. {Step} begins a sentence."""
    words = WORDS[task]
    return text.format(**words, **{name.capitalize(): capitalised(word) for name, word in words.items()})


def capitalised(text: str) -> str:
    """Return text with a capital first letter."""
    return text[:1].upper() + text[1:]
