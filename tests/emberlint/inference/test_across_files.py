"""Inference across files: functions, classes, constants and types that other files of the project define."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run.engine import check_texts

NOWHERE = Path("/nowhere/project")
HELPERS = """
import numpy as np
from emberharmony import ops
from emberharmony.core.types import Tensor


def norm(v):
    return ops.sqrt(ops.sum(ops.square(v)))


def halves(v):
    return ops.split(v, 2)


def count(v):
    return len(v)


def scaled(x, factor=2):
    return x * factor


def pair(x, y):
    return x, y


def tensors() -> list[Tensor]:
    return []


class Base:
    def __init__(self, n):
        self.w = ops.ones(n)
        self.n = 3

    def scale(self):
        return self.w

    @property
    def bias(self):
        return ops.zeros(3)

    @classmethod
    def make(cls):
        return cls(3)


class Layer(Base):
    pass


class Money:
    def __init__(self, x):
        self.cents = 3

    def __add__(self, other):
        return Money(ops.ones(3))


EPS = ops.ones(())
LIMIT = 3
NAMES = {"a": ops.ones(3), "b": "text"}
Array = np.ndarray | float
"""
FILES = {
    "library/helpers.py": HELPERS,
    "library/__init__.py": "from .helpers import norm as length\nfrom . import helpers\n",
    "library/stars.py": "from .helpers import *\n",
    "library/compat.py": "import numpy as np\n",
}


def found(source: str, path: str = "library/deep/module.py", **files: str) -> list[str]:
    texts = {**FILES, **files, path: source}
    report = check_texts(texts, Settings(root=NOWHERE), frozenset({"EMB201"}))
    return [one.reason for one in report.findings if one.path == path and one.code == "EMB201"]


@pytest.mark.parametrize(
    "source, count",
    [
        ("from library.helpers import norm\ny = norm(3) + 1", 1),
        ("from ..helpers import norm\ny = norm(3) + 1", 1),
        ("from library import length\ny = length(3) + 1", 1),
        ("from library import helpers as h\ny = h.norm(3) + 1", 1),
        ("import library.helpers\ny = library.helpers.norm(3) + 1", 1),
        ("import library\ny = library.helpers.norm(3) + library.length(3)", 1),
        ("from library.stars import norm\ny = norm(3) + 1", 1),
        ("from library.helpers import *\ny = norm(3) + 1", 1),
        ("from library.compat import np\ny = np.ones(3) + 1", 1),
        ("from library.helpers import halves\na, b = halves(3)\ny = a + b", 1),
        ("from library.helpers import tensors\ny = [v + 1 for v in tensors()]", 1),
        ("from library.helpers import count\ny = count(3) + 1", 0),
        ("from library.helpers import EPS, LIMIT\ny = EPS + LIMIT\nz = LIMIT + 1", 1),
        ("from library.helpers import NAMES\ny = NAMES['a'] + 1\nz = NAMES['b'] + 'x'", 1),
        ("from library.helpers import Array\ndef f(x: Array):\n    return x + 1", 1),
        ("from library import helpers\ndef f(x: helpers.Array):\n    return x + 1", 1),
        # a function that passes its arguments through
        ("from library.helpers import EPS, scaled\ny = scaled(EPS) + 1\nz = scaled(3) + 1", 1),
        ("from library.helpers import EPS, pair\na, b = pair(EPS, 3)\ny = a + 1\nz = b + 1", 1),
        ("from library.helpers import EPS, pair\na, b = pair(3, y=EPS)\ny = a + 1\nz = b + 1", 1),
        # classes
        ("from library.helpers import Base\ny = Base(3).w + Base(3).n", 1),
        ("from library.helpers import Layer\ny = Layer(3).scale() + 1", 1),
        ("from library.helpers import Base\ny = Base.make().w + 1", 1),
        ("from library.helpers import Base\nclass A(Base):\n    def f(self):\n        return self.w + self.bias", 1),
        ("from library.helpers import Base\nclass A(Base):\n    def f(self):\n        return self.n + 1", 0),
        ("from library.helpers import Base\ndef f(b: Base):\n    return b.w + b.n", 1),
        ("from library.helpers import Money\ny = Money(1) + Money(2)", 0),
        # what the project does not define
        ("from elsewhere.helpers import norm\ny = norm(3) + 1", 0),
        ("from library.helpers import missing\ny = missing(3) + 1", 0),
        ("def norm(v):\n    return 1\ny = norm(3) + 1", 0),
    ],
)
def test_names_of_other_files_are_known(source: str, count: int) -> None:
    assert len(found(source)) == count


def test_the_reason_names_the_function_of_the_other_file() -> None:
    (reason,) = found("from library.helpers import norm\ny = norm(3) + 1")
    assert "`library.helpers.norm` returns a tensor in its file" in reason


def test_a_base_class_of_another_file_makes_a_module_class() -> None:
    base = "import keras\n\nclass Basis(keras.layers.Layer):\n    pass\n"
    source = (
        "from library.base import Basis\n\nclass A(Basis):\n    def call(self, inputs):\n        return inputs * 2\n"
    )
    texts = {"library/base.py": base, "library/a.py": source}
    (one,) = check_texts(texts, Settings(root=NOWHERE), frozenset({"EMB201"})).findings
    assert (one.path, one.line) == ("library/a.py", 5)


def test_files_that_import_each_other_are_checked_in_a_fixed_order() -> None:
    ring = {
        "library/one.py": "from library import two\nfrom emberharmony import ops\n\ndef f():\n    return ops.ones(3)\n",
        "library/two.py": "from library.one import f\n\ndef g():\n    return f() + 1\n",
    }
    results = []
    for texts in (ring, dict(reversed(ring.items()))):
        report = check_texts(texts, Settings(root=NOWHERE), frozenset({"EMB201"}))
        results.append(sorted((one.path, one.line) for one in report.findings))
    assert results[0] == results[1]


def test_a_tensor_of_one_library_in_another_file_has_no_safe_repair() -> None:
    texts = {
        "library/made.py": "import numpy as np\n\nx = np.ones(3)\n",
        "library/use.py": "from library.made import x\ny = x + 1\n",
    }
    found = check_texts(texts, Settings(root=NOWHERE), frozenset({"EMB201"})).findings
    assert [one.fix.safety for one in found if one.fix] == ["unsafe"]


def test_host_data_of_a_backend_is_no_tensor() -> None:
    texts = {
        "library/backend/host.py": "import numpy as np\n\ndef indices(x):\n    return np.ones(3)\n",
        "library/use.py": "from library.backend.host import indices\ny = indices(3) + 1\n",
    }
    for host, count in ((("numpy",), 0), ((), 1)):
        settings = Settings(root=NOWHERE, host=host)
        assert len(check_texts(texts, settings, frozenset({"EMB201"})).findings) == count


def test_the_settings_count_more_than_the_file_of_an_op() -> None:
    texts = {
        "library/ops.py": "def sin(x):\n    return 3\n",
        "library/use.py": "from library import ops\ny = ops.sin(3) + 1\n",
    }
    settings = Settings(root=NOWHERE, namespaces=("library.ops",))
    (one,) = check_texts(texts, settings, frozenset({"EMB201"})).findings
    assert "`library.ops.sin` returns a tensor" in one.reason
