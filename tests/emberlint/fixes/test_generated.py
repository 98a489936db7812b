"""Repairs of generated expressions: nested operators with comments and line breaks between them."""

import ast
import io
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberlint.config.settings import Settings
from emberlint.findings import Safety
from emberlint.run.engine import check_texts
from emberlint.run.repair import repair_text

SETTINGS = Settings(root=Path("/nowhere"))
CODES = frozenset({"EMB201", "EMB202"})
PATH = "library/module.py"
SETUP = (
    "from emberharmony import ops\n\nx = ops.convert_to_tensor([0.5, 1.5, -2.5])\n"
    "i = ops.convert_to_tensor([3, 5, 7])\nn = 2\n"
)
LEAVES = st.sampled_from(["x", "i", "2.0", "n", "x[0]", "x[1:][0]", "ops.exp(x)", "ops.sum(x)", "3"])
GAPS = st.sampled_from([" ", " ", "", "   ", "\n        ", "  # why\n    ", " \\\n "])
ARITHMETIC = st.sampled_from(["+", "-", "*", "/"])
COMPARISONS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({}){}{}{}({})".format, inner, GAPS, ARITHMETIC, GAPS, inner),
        st.builds("{} {}{}({})".format, inner, ARITHMETIC, GAPS, inner),
        st.builds("-({})".format, inner),
        st.builds("({}{}{})".format, GAPS, inner, GAPS),
        st.builds("abs({})".format, inner),
        st.builds("ops.where(({}) > ({}),{}{}, {})".format, inner, inner, GAPS, inner, inner),
        st.builds("(({}) if n > 1 else ({}))".format, inner, inner),
        st.builds("(lambda v: v * ({}))({})".format, inner, inner),
        st.builds("(y := ({}))".format, inner),
        st.builds("[{}, {}][0]".format, inner, inner),
        st.builds("f(({}) + ops.ones(3), key=({}))".format, inner, inner),
    )


EXPRESSIONS = st.recursive(LEAVES, _larger, max_leaves=8)
FUNCTION = "def f(v, key):\n    return v - key\n"


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def run(source: str) -> list[Any]:
    space: dict[str, Any] = {}
    exec(compile(source, "<example>", "exec"), space)
    return [np.asarray(ops.to_numpy(one) if ops.is_tensor(one) else one) for one in space["result"]]


@given(EXPRESSIONS, EXPRESSIONS, COMPARISONS)
def test_every_generated_expression_is_repaired(first: str, second: str, comparison: str) -> None:
    source = f"{SETUP}{FUNCTION}result = ({first},\n    ({second}) {comparison} x,)\n"
    after = repair_text(PATH, source, SETTINGS, CODES, unsafe=False).after
    ast.parse(after)
    assert after != source
    assert comments(after) == comments(source)
    assert repair_text(PATH, after, SETTINGS, CODES, unsafe=False).after == after
    left = check_texts({PATH: after}, SETTINGS, CODES).findings
    assert [one for one in left if one.fix is not None and one.fix.safety is Safety.SAFE] == []
    with ops.use_backend("numpy"):
        (old, compared), (new, other) = run(source), run(after)
    assert (old.shape, compared.shape, compared.dtype) == (new.shape, other.shape, other.dtype)
    np.testing.assert_allclose(old.astype("float64"), new.astype("float64"), rtol=1e-4, atol=1e-4)
