"""One sentence for every kind of file that cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager

from steelyard.errors import UserError


@contextmanager
def refusing(sentence: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these kinds into a UserError: the sentence, the exception's text, and "download it again".

    Errors of the system, such as a full disk, are passed on: they have other causes than the content of a file.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error).rstrip(".")
        raise UserError(f"{sentence} ({reason}); download it again.") from error
