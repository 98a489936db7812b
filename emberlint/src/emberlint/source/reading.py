"""Decodes the bytes of a Python file as the interpreter does, and finds the Python source of a notebook."""

import tokenize
from io import BytesIO, TextIOWrapper

from emberlint.source.discover import NOTEBOOK
from emberlint.source.notebooks.notebook import Notebook


def read_text(content: bytes, newline: str | None = None) -> str:
    r"""Returns the source text of a file, decoded by the encoding that the file declares.

    Args:
        content: The bytes of the file.
        newline: As for `open`: None converts every line end to `\n`, "" keeps them.

    Raises:
        SyntaxError: if the declared encoding does not exist, or is none of text (`hex`, `rot13`, `undefined`).
        UnicodeDecodeError: if the bytes are invalid in that encoding.
    """
    encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
    try:
        return TextIOWrapper(BytesIO(content), encoding, newline=newline).read()
    except UnicodeDecodeError:
        raise
    except (LookupError, UnicodeError) as error:
        raise SyntaxError(f"encoding problem: {encoding}: {error}") from error


def read_notebook(path: str, content: bytes) -> Notebook | None:
    """Returns the notebook that a file holds, or None if its name is not that of a notebook.

    Raises:
        NotebookError: if the content is not a notebook; this is a SyntaxError.
        UnicodeDecodeError: if the content is not UTF-8.
    """
    return Notebook(read_text(content, newline="")) if path.endswith(NOTEBOOK) else None


def read_source(path: str, content: bytes) -> tuple[str, Notebook | None]:
    """Returns the Python source of a file, and the notebook that holds it if it is one.

    Raises:
        SyntaxError: if the declared encoding does not exist, or if the content is not a notebook.
        UnicodeDecodeError: if the bytes are invalid in the encoding.
    """
    notebook = read_notebook(path, content)
    return (read_text(content), None) if notebook is None else (notebook.text, notebook)
