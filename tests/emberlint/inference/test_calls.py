"""Functions, classes, layers and methods of the file."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = "import keras\nimport torch\nfrom pydantic import BaseModel\nfrom keras import ops\nx = ops.ones(3)\n"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("def f(y):\n    return y\nf(x)", "B"),
        ("def f(y):\n    return y.shape[0]\nf(x)", "number"),
        ("def f():\n    return g()\ndef g():\n    return ops.ones(3)\nf()", "B"),
        ("def f(n):\n    return f(n - 1) if n else ops.ones(3)\nf(3)", "B"),
        ("def f(*parts):\n    return parts[0]\nf(x)", "B"),
        ("def f(*, scale):\n    return scale\nf(scale=x)", "B"),
        ("def f():\n    yield x\nlist(f())[0]", "B"),
        ("async def f():\n    return x\nasync def g():\n    await f()", "B"),
        ("def f(y=x):\n    return y\nf()", "B"),
        ("def f(y=2):\n    return y\nf()", "number"),
        ("def f(xp=ops):\n    return xp.ones(3)\nf()", "B"),
        ("def f(y=object()):\n    return y\nf()", "unknown"),
        ("def f() -> int:\n    return x\nf()", "number"),
        ("def f():\n    return 1, x\na, b = f()\na", "number"),
        ("def f():\n    return 1, x\na, b = f()\nb", "B"),
        ("f = ops.sin\nf(2)", "A"),
        ("{'sin': ops.sin, 'cos': ops.cos}[name](2)", "A"),
        ("getattr(ops, 'sin')(2)", "A"),
        ("x.sum()", "B"),
        ("x.item()", "number"),
        ("x.is_contiguous()", "number"),
        ("x.reshape(3).shape", "container"),
        ("x.split(2)", "tensors"),
        ("parts = []\nparts.append(x)\nparts[0]", "B"),
        ("table = {}\ntable.setdefault('a', x)\ntable.get('a')", "B"),
        ("table = dict(a=x)\ntable.pop('a')", "B"),
        ("text = 'a'\ntext.upper()", "string"),
    ],
)
def test_the_kind_of_a_call(held: Held, source: str, expected: str) -> None:
    assert held(START + source) == expected


@pytest.mark.parametrize(
    "body, expression, expected",
    [
        ("    def __init__(self):\n        self.w = x", "A().w", "B"),
        ("    def __init__(self, n):\n        self.n = n", "A(3).n", "number"),
        ("    def __init__(self, w):\n        self.w = w", "A(x).w", "B"),
        ("    w = x", "A.w", "B"),
        ("    w: 'torch.Tensor'", "A().w", "B"),
        ("    @property\n    def w(self):\n        return x", "A().w", "B"),
        ("    @classmethod\n    def make(cls):\n        return cls()", "A.make()", "instance"),
        ("    @staticmethod\n    def make():\n        return x", "A.make()", "B"),
        ("    def __call__(self):\n        return x", "A()()", "B"),
        ("    def __getitem__(self, i):\n        return x", "A()[0]", "B"),
        ("    def __iter__(self):\n        yield x", "[y for y in A()][0]", "B"),
        ("    def set(self):\n        self.w = x\n    def get(self):\n        return self.w", "A().get()", "B"),
        ("    def f(self):\n        return 1", "A().f()", "number"),
    ],
)
def test_the_kind_of_a_member_of_a_class(held: Held, body: str, expression: str, expected: str) -> None:
    assert held(f"{START}class A:\n{body}\n{expression}") == expected


def test_attributes_are_inherited_and_can_be_overridden(held: Held) -> None:
    base = START + "class A:\n    def __init__(self):\n        self.w = self.make()\n"
    base += "    def make(self):\n        return 1\n    def get(self):\n        return self.w\n"
    assert held(base + "class B(A):\n    pass\nB().get()") == "number"
    assert (
        held(base + "class B(A):\n    def __init__(self):\n        super().__init__()\n        self.v = x\nB().v")
        == "B"
    )


@pytest.mark.parametrize(
    "base, body, expected",
    [
        ("keras.layers.Layer", "    def call(self, y):\n        y", "C"),
        ("keras.layers.Layer", "    def call(self, y, training=False):\n        training", "number"),
        ("torch.nn.Module", "    def forward(self, y, length):\n        length", "unknown"),
        ("object", "    def call(self, y):\n        y", "unknown"),
        ("BaseModel", "    def call(self, y):\n        y", "unknown"),
        ("keras.layers.Layer", "    def f(self):\n        self.add_weight(shape=(3,))", "A"),
        ("keras.metrics.Metric", "    def f(self):\n        self.add_variable(shape=(3,))", "A"),
        ("object", "    def f(self):\n        self.add_weight(shape=(3,))", "unknown"),
        ("keras.Model", "    def call(self, y):\n        self.dense(y)", "C"),
        (
            "torch.nn.Module",
            "    def __init__(self):\n        self.register_buffer('m', torch.zeros(3))\n"
            "    def f(self):\n        self.m",
            "B",
        ),
    ],
)
def test_the_kind_of_parameters_and_attributes_of_module_classes(
    held: Held, base: str, body: str, expected: str
) -> None:
    assert held(f"{START}class A({base}):\n{body}") == expected


def test_a_layer_returns_a_tensor(held: Held) -> None:
    assert held(START + "keras.layers.Dense(3)(x)") == "B"
    assert held(START + "class A(keras.Model):\n    def call(self, y):\n        return y\nA()(x)") == "B"


def test_an_abstract_forward_returns_what_its_overrides_return(held: Held) -> None:
    abstract = "class A(keras.Model):\n    def call(self, y):\n        raise NotImplementedError\n"
    assert held(START + abstract + "def f(model: A):\n    model(x)") == "B"
