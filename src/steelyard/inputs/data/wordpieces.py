"""WordPiece vocabularies as in BERT: read from a file next to the data, or learned from the training text.

Uses Hugging Face's `tokenizers`. Text is lower-cased and stripped of accents, and every Chinese character is a word.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from unicodedata import category

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from steelyard.errors import UserError
from steelyard.inputs.data.text_files import lines_of, read_text

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = "vocab.txt"  # one piece per line, as BERT's vocabularies are published
# Largest shares of a learned vocabulary for single characters: at the start of a word (or a Chinese character), and inside.
INITIAL_SHARE, CONTINUATION_SHARE = 3 / 4, 1 / 8
MIN_OCCURRENCES = 2
LINES_PER_BLOCK = 1000


def tokenizer(pieces: list[str]) -> Tokenizer:
    """Return a tokenizer with these pieces; the id of a piece is its index."""
    made = Tokenizer(models.WordPiece({piece: index for index, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(list(SPECIAL))  # so that "[UNK]" in the text is one token, not three
    return made


def read_vocabulary(path: Path, size: int) -> list[str]:
    """Return the pieces of a vocabulary file; UserError: it does not have `size` pieces, or a piece is duplicated or missing."""
    pieces = lines_of(read_text(path))
    if len(pieces) != size:
        raise UserError(
            f"{path} has {len(pieces):,} word pieces, but this preset needs {size:,}; put a vocabulary of that size there, or "
            "remove the file to have one learned from the text."
        )
    if missing := [piece for piece in SPECIAL if piece not in pieces]:
        raise UserError(f"{path} has no piece '{missing[0]}'; add {', '.join(SPECIAL)}.")
    if repeated := [piece for piece, count in Counter(pieces).items() if count > 1]:
        raise UserError(f"{path} has the piece '{repeated[0]}' more than once; remove the duplicates.")
    return pieces


def learn_vocabulary(lines: Iterable[str], again: Iterable[str], size: int) -> list[str]:
    """Return at most `size` pieces learned from a text, which is read twice: `lines` for characters, `again` for words.

    The same text always gives the same pieces. The library would number continuation characters in the order of a hash
    table, and use these numbers to break ties between pairs, so the characters are passed to it in sorted order.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    initial, inside = _count_characters(map(normalizer.normalize_str, lines))
    alphabet = _most_frequent(initial + inside, int(size * INITIAL_SHARE))
    known = set(alphabet)
    continued = [
        f"##{character}" for character in _most_frequent(inside, int(size * CONTINUATION_SHARE)) if character in known
    ]
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=MIN_OCCURRENCES,
        special_tokens=[*SPECIAL, *continued],
        show_progress=False,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
    )
    learner.train_from_iterator((line.replace("[UNK]", " ") for line in again), trainer)
    ids = learner.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _count_characters(lines: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count the characters that begin a word, and those inside words. A punctuation mark is a word by itself."""
    words: Counter[str] = Counter()
    lines = iter(lines)
    while block := " ".join(islice(lines, LINES_PER_BLOCK)):
        words.update(block.split())
    initial: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for word, count in words.items():
        previous = ""
        for character in word:
            begins = _is_punctuation(character) or not previous or _is_punctuation(previous)
            (initial if begins else inside)[character] += count
            previous = character
    return initial, inside


def _is_punctuation(character: str) -> bool:
    return not character.isalnum() and (character.isascii() or category(character).startswith("P"))


def _most_frequent(counts: Counter[str], limit: int) -> list[str]:
    """Return the most frequent characters, ties by code point, sorted by code point."""
    return sorted(sorted(counts, key=lambda character: (-counts[character], character))[:limit])
