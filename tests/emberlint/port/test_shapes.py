"""`emberlint port` of the methods that shapes and tensors of PyTorch share."""

import pytest

from tests.emberlint.port.porting import ported

HEAD = "import torch\n\n\n"


@pytest.mark.parametrize(
    "before, after",
    [
        ("shape.numel()", "math.prod(shape)"),
        ("shape[1:].numel()", "math.prod(shape[1:])"),
        ("(shape + shape).numel()", "math.prod((shape + shape))"),
        ("x.shape.numel()", "math.prod(x.shape)"),
        ("x.shape[:-2].numel()", "math.prod(x.shape[:-2])"),
        ("x.size().numel()", "math.prod(ops.shape(x))"),
        ("y.shape.numel()", "math.prod(y.shape)"),
        ("torch.Size([2, y]).numel()", "math.prod(torch.Size([2, y]))"),
        ("torch.broadcast_shapes(shape, y).numel()", "math.prod(torch.broadcast_shapes(shape, y))"),
        ("x.numel()", "ops.size(x)"),
        ("torch.sin(y).numel()", "ops.size(ops.sin(y))"),
        ("torch.zeros(shape.numel(), 2)", "ops.zeros((math.prod(shape), 2))"),
    ],
)
def test_the_elements_of_a_shape_are_multiplied_and_those_of_a_tensor_counted(before: str, after: str) -> None:
    result = ported(f"{HEAD}def f(x: torch.Tensor, shape: torch.Size, y):\n    return {before}\n")
    assert f"return {after}\n" in result.after
    assert ("import math\n" in result.after) == ("math." in after)
    assert not any("numel" in use.native for use in result.remaining)
    again = ported(result.after)
    assert again.after == result.after
    assert again.ported == ()


def test_a_shape_is_known_through_names_properties_and_calls() -> None:
    source = (
        "import math\nimport torch\n\n\ndef shape_of(x: torch.Tensor):\n    return x.shape\n\n\n"
        "class C:\n    @property\n    def batch_shape(self) -> torch.Size:\n        return self.size\n\n"
        "    def f(self, x: torch.Tensor):\n        shape = x.shape[:1]\n"
        "        return shape.numel(), self.batch_shape.numel(), shape_of(x).numel()\n"
    )
    after = ported(source).after
    assert "return math.prod(shape), math.prod(self.batch_shape), math.prod(shape_of(x))" in after
    assert after.count("import math") == 1


@pytest.mark.parametrize("receiver", ["y", "y.batch_shape", "y.size()", "g(y)"])
def test_what_may_be_a_tensor_or_a_shape_is_left_and_listed(receiver: str) -> None:
    result = ported(f"{HEAD}def f(y):\n    return {receiver}.numel()\n")
    use = next(use for use in result.remaining if use.native == ".numel")
    assert use.reason == f"`{receiver}` may be a tensor or a shape"
    assert f"return {receiver}.numel()" in result.after
    assert ported(result.after).after == result.after


def test_a_method_of_that_name_of_the_file_is_left() -> None:
    source = f"{HEAD}class C:\n    def numel(self):\n        return self.a.numel() + self.numel()\n"
    assert ported(source).after == source


def test_a_shape_is_left_where_the_name_of_the_module_is_bound() -> None:
    result = ported(f"{HEAD}math = 1\n\n\ndef f(shape: torch.Size):\n    return shape.numel()\n")
    assert "return shape.numel()" in result.after
    assert any("`math` is bound to something else here" in use.reason for use in result.remaining)
