"""`emberlint port` of in-place writes, which stay: those that the libraries show in different ways are marked."""

import pytest

from emberlint.port.rewrite import MARK
from tests.emberlint.port.porting import ported


def function(*lines: str) -> str:
    """Returns a file with a function of these lines, in which `x` is a tensor."""
    body = "".join(f"    {line}\n" for line in ("x = np.ones(3, dtype=np.float32)", "out = []", *lines))
    return f"import numpy as np\n\n\ndef f(vs, y, i, j):\n{body}"


KEPT = [
    ("for v in vs:", "    x[0] += v", "    out.append(x[0])"),
    ("for v in vs:", "    out.append(x[0])", "    x[0] = v"),
    ("for v in vs:", "    x[0] += v", "    a = x[0]", "    out.append(a)"),
    ("for v in vs:", "    x += v", "    out.append((v, x[0]))"),
    ("out = [x[i] for i in vs]", "x[0] = 1", "return out"),
    ("for v in vs:", "    x[0] += v", "    yield x[0]"),
    ("a = x[i]", "x[i] = x[j]", "x[j] = a"),
    ("a = x[1:]", "x[1] = 0", "return np.sum(a)"),
    ("a, b = x[i], x[j]", "x[i] = 0", "return b, a"),
    ("x[i], x[j] = x[j], x[i]",),
    ("y[i], y[j] = y[j], y[i]",),
    ("first = x[0]", "while i:", "    out.append(first)", "    x[0] += 1"),
]
PARTS = [
    ("total = x[0]", "for i in vs:", "    total += x[i]"),
    ("for row in x:", "    row[0] = 1"),
    ("row = x[i]", "row[j] = 1"),
    ("x[i][j] = 1",),
]
FINE = [
    ("for v in vs:", "    x[i] = v", "return x"),
    ("for i in vs:", "    x[i] = x[i - 1] + np.sin(x[i - 2])"),
    ("for i in vs:", "    a = x[i]", "    x[i] = a + 1"),
    ("x[i] = x[j]",),
    ("x = x[1:]", "x[0] = 1", "x *= 2", "return x"),
    ("x, a = x[::-1], 1", "x *= a", "return x"),
    ("x[[0, 1]] = x[[1, 0]]",),
    ("for v in vs:", "    x[0] += v", "    out.append(float(x[0]))"),
    ("for v in vs:", "    x[0] += v", "    out.append(np.copy(x[0]))"),
    ("x[0] = 1", "out.append(x[0])", "return x[0]"),
    ("for v in vs:", "    out[v] += 1", "    out.append(out[0])"),
    ("y['a'] += 1", "y['b'] = y['a'], y['a']"),
    ("a = x[[0, 1]]", "a += 1", "x[0] = 2", "return a"),
]


@pytest.mark.parametrize("lines", KEPT, ids=" ".join)
def test_a_write_that_shows_in_a_part_that_was_kept_is_marked(lines: tuple[str, ...]) -> None:
    result = ported(function(*lines))
    (use,) = [use for use in result.remaining if use.kind == "write"]
    assert "is kept, which is a view in some libraries and a copy in others" in use.reason
    assert use.advice.startswith("keep ops.copy(")
    assert f"{MARK} in-place write: " in result.after.splitlines()[use.line - 2]
    assert ported(result.after).after == result.after


@pytest.mark.parametrize("lines", PARTS, ids=" ".join)
def test_a_write_to_a_part_that_may_be_a_copy_is_marked(lines: tuple[str, ...]) -> None:
    result = ported(function(*lines))
    (use,) = [use for use in result.remaining if use.kind == "write"]
    assert use.reason == "it writes to a part of `x`, which is a view in some libraries and a copy in others"
    assert ported(result.after).after == result.after


@pytest.mark.parametrize("lines", FINE, ids=" ".join)
def test_a_write_that_is_the_same_in_all_libraries_is_not_marked(lines: tuple[str, ...]) -> None:
    assert not [use for use in ported(function(*lines)).remaining if use.kind == "write"]


def test_a_write_of_a_method_shows_in_what_another_one_returned() -> None:
    source = (
        "import numpy as np\n\n\nclass C:\n    def __init__(self):\n        self.x = np.zeros(3, dtype=np.float32)\n"
        "        self.k = np.zeros(3, dtype=np.float32)\n        self.k[0] = 1\n\n    def add(self, v):\n"
        "        self.x[0] += v\n\n    def get(self):\n        return self.x[0], self.k[0]\n"
    )
    (use,) = ported(source).remaining
    assert (use.kind, use.advice) == ("write", "keep ops.copy(self.x[0])")


def test_a_file_without_a_library_of_arrays_has_no_such_writes() -> None:
    assert not ported("def f(x):\n    x[0], x[1] = x[1], x[0]\n").remaining


def test_such_a_write_leaves_the_dtypes_of_the_file_ported() -> None:
    result = ported(function("KINDS = {'a': np.float64}", "x[i], x[j] = x[j], x[i]"))
    assert "KINDS = {'a': ops.float64}" in result.after
    assert [use.kind for use in result.remaining] == ["write"]


@pytest.mark.parametrize(
    "call, advice",
    [
        ("x.add_(1)", "x = ops.add(x, ...)"),
        ("x.clamp_(min=0)", "x = ops.clip(x, ...)"),
        ("x.zero_()", "assign the result of an op"),
        ("y.mul_(2)", "y = ops.multiply(y, ...)"),
        ("y.weight.normal_()", "assign the result of an op"),
    ],
)
def test_a_method_that_writes_into_its_tensor_is_left_and_marked(call: str, advice: str) -> None:
    result = ported(f"import torch\n\n\ndef f(x: torch.Tensor, y):\n    {call}\n    return torch.sin(x)\n")
    (use,) = result.remaining
    assert (use.kind, use.advice) == ("write", advice)
    assert use.native == "." + call.partition("(")[0].rpartition(".")[2]
    assert ported(result.after).after == result.after


@pytest.mark.parametrize("call", ["self.add_(1)", "y.remove_(1)", "A().add_(y)", "s.add_(1)", "init.zero_(y)"])
def test_other_methods_with_such_names_are_not_marked(call: str) -> None:
    head = "import torch, init\n\n\nclass A:\n    def add_(self, y, s: set = ()):\n        "
    assert not ported(f"{head}{call}\n        return torch.sin(y)\n").remaining
