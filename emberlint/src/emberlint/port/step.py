"""The step of a port: a native use of a file, with the changes that port it or the reason against it."""

import ast
from typing import NamedTuple

from emberlint.fixes.spelling import Spelling
from emberlint.fixes.splice import Change

ANNOTATION = "annotation"


class Step(NamedTuple):
    """A native use with its kind, and either the changes that port it or the reason against and the way out."""

    node: ast.expr
    native: str
    kind: str
    changes: tuple[Change, ...] = ()
    space: Spelling | None = None
    reason: str = ""
    advice: str = ""
