"""Decodes the bytes of a Python file as the interpreter does."""

import tokenize
from io import BytesIO, TextIOWrapper


def read_text(content: bytes, newline: str | None = None) -> str:
    r"""Returns the source text of a file, decoded by the encoding that the file declares.

    Args:
        content: The bytes of the file.
        newline: As for `open`: None converts every line end to `\n`, "" keeps them.

    Raises:
        SyntaxError: if the declared encoding does not exist.
        UnicodeDecodeError: if the bytes are invalid in that encoding.
    """
    encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
    return TextIOWrapper(BytesIO(content), encoding, newline=newline).read()
