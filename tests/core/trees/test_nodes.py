"""Registered classes and dataclasses as nodes of trees: children, static parts, and errors."""

from __future__ import annotations

import collections
import dataclasses
import enum
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import Parameter, ops
from emberharmony.core.trees.nodes import declared_fields
from emberharmony.core.trees.objects import instances_in
from emberharmony.errors import ArgumentError, ArgumentTypeError, DTypeError
from tests.ops.trees import lists

if TYPE_CHECKING:
    from somewhere import Unknown

Activation = Callable[[Any], Any]


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


@dataclasses.dataclass
class Linear:
    weight: Any
    bias: Any
    name: str = "x"
    activation: Activation = ops.tanh
    heads: int = 2
    pads: tuple[int, int] | None = None
    mode: Mode = Mode.TRAIN

    def __call__(self, x: Any) -> Any:
        return ops.add(self.activation(ops.matmul(x, self.weight)), self.bias)


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    count: int
    values: Any = dataclasses.field(default=0.0)
    kept: Any = dataclasses.field(default=0.5, metadata={"static": True})
    given: int = dataclasses.field(default=3, metadata={"static": False})
    made: Any = dataclasses.field(default=None, init=False)


class Line:
    def __init__(self, slope: Any, start: Any, unit: Any = "m") -> None:
        self.slope, self.start, self.unit = slope, start, unit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and vars(self) == vars(other)


class Dashed(Line):
    pass


class Stack(list[Any]):
    """A list in reverse order."""


ops.register_node(
    Line,
    lambda line: ({"slope": line.slope, "start": line.start}, (type(line), line.unit)),
    lambda static, children: static[0](**children, unit=static[1]),
)
ops.register_node(Stack, lambda stack: (stack[::-1], None), lambda _, children: Stack(children[::-1]))


@pytest.fixture
def fresh() -> type:
    """Returns a class that is not registered."""

    class Fresh:
        def __init__(self, value: Any = 1.0) -> None:
            self.value = value

    return Fresh


def test_options_of_a_dataclass_are_a_part_of_its_structure(backend: str) -> None:
    linear, x = Linear(ops.ones((2, 3)), ops.zeros(3)), ops.ones((4, 2))

    def loss(linear: Linear, x: Any) -> Any:
        return ops.sum(linear(x))

    value, gradients = ops.value_and_grad(loss)(linear, x)
    assert isinstance(gradients, Linear)
    assert lists((value, gradients.bias)) == (pytest.approx(12 * np.tanh(2.0), rel=1e-6), [4.0] * 3)
    assert (gradients.name, gradients.activation, gradients.heads) == ("x", ops.tanh, 2)
    stepped = ops.tree_map(ops.subtract, linear, gradients)
    assert (lists(stepped.bias), stepped.name) == ([-4.0] * 3, "x")
    for axes in (None, Linear(None, None)):
        assert lists(ops.vmap(lambda m, x: m(x), in_axes=(axes, 0))(linear, x)) == lists(linear(x))
    with pytest.raises(ArgumentError, match="in_axes"):
        ops.vmap(lambda m, x: m(x), in_axes=(Linear(None, None, heads=3), 0))(linear, x)
    _, pull = ops.vjp(lambda m: m, linear)
    with pytest.raises(ArgumentError, match="the same tree"):
        pull(dataclasses.replace(linear, name="y"))


def test_metadata_decides_whether_a_field_is_static() -> None:
    counted = Counted(7, [1.0, None])
    leaves, treedef = ops.tree_flatten(counted)
    assert leaves == [1.0, 3]
    assert str(treedef) == "Counted(values: list(*, None), given: *, count=7, kept=0.5)"
    assert ops.tree_unflatten(treedef, [2.0, 4]) == Counted(7, [2.0, None], 0.5, 4)


@dataclasses.dataclass
class Annotations:
    text: str = "a"
    either: str | int | None = None
    maybe: Optional[bool] = None  # noqa: UP045
    old: Union[str, bytes] = "a"  # noqa: UP007
    call: Callable[..., Any] = abs
    bare: Callable = abs  # type: ignore[type-arg]
    builtin: callable = abs  # type: ignore[valid-type]
    kind: type[Any] = int
    of: Literal["a", "b"] = "a"
    noted: Annotated[int, "noted"] = 1
    pair: tuple[int, ...] = (1, 2)
    mode: Mode = Mode.TEST
    dtype: ops.DType = ops.float32
    alias: Activation = abs


@dataclasses.dataclass
class Leaves:
    number: float = 1.0
    loose: Any = "a"
    mixed: int | float = 1
    axes: list[int] = dataclasses.field(default_factory=lambda: [0])
    empty: tuple[()] = ()
    unknown: Unknown = "a"  # type: ignore[valid-type]
    rank: int = ops  # type: ignore[assignment]
    called: Callable[[Any], Any] = dataclasses.field(default_factory=lambda: Linear(1.0, 2.0))


def test_annotations_declare_options() -> None:
    assert ops.tree_leaves(Annotations()) == []
    assert {field for _, field in declared_fields(Annotations)} == {None}
    assert ops.tree_leaves(Leaves()) == [1.0, "a", 1, 0, "a", ops, 1.0, 2.0]
    fields = ["x", ("y", int), ("z", Annotated[int, "noted"]), ("w", Annotated[float, "a leaf"])]
    assert ops.tree_leaves(dataclasses.make_dataclass("Made", fields)(1.0, 2, 3, 4.0)) == [1.0, 4.0]


def test_static_values_are_compared_with_their_types() -> None:
    with pytest.raises(ArgumentError, match=r"name='x'.* and .*name='y'"):
        ops.tree_map(lambda a, b: a, Linear(1.0, 2.0), Linear(1.0, 2.0, "y"))
    structures = [ops.tree_flatten(Linear(1.0, 2.0, heads=heads, pads=pads))[1] for heads in (1, True) for pads in PADS]
    assert len(set(structures)) == 6
    assert structures[0] == ops.tree_flatten(Linear(3.0, 4.0, heads=1, pads=(1, 0)))[1]


PADS = ((1, 0), (True, False), None)


def test_a_static_field_holds_no_tensor(backend: str) -> None:
    with pytest.raises(ArgumentTypeError, match="the field 'kept' of Counted is static but holds a tensor"):
        ops.tree_leaves(Counted(1, 1.0, ops.ones(2)))


def test_a_leaf_that_is_no_tensor_is_refused_with_the_way_out(backend: str) -> None:
    for leaf in ("a", ops.sin):
        with pytest.raises(
            DTypeError, match=r"grad\(\).* holds .*, which is no tensor; .* metadata=\{'static': True\}"
        ):
            ops.grad(lambda tree: ops.sum(tree.number))(Leaves(ops.ones(2), leaf))


def test_registered_nodes_go_through_transforms(backend: str) -> None:
    line = Dashed(ops.array([1.0, 2.0]), ops.array(3.0))
    gradient = ops.grad(lambda line: ops.sum(ops.add(ops.square(line.slope), line.start)))(line)
    assert type(gradient) is Dashed
    assert lists((gradient.slope, gradient.start)) == ([2.0, 4.0], 2.0)
    assert gradient.unit == "m"
    mapped = ops.vmap(lambda line: Line(line.start, line.slope, "s"))(Line(ops.ones(2), ops.zeros(2)))
    assert (lists(mapped.start), mapped.unit) == ([1.0, 1.0], "s")
    stacked = Stack([1.0, {"a": 2.0}])
    assert ops.tree_leaves(stacked) == [2.0, 1.0]
    assert ops.tree_map(lambda leaf: leaf, stacked) == stacked
    assert [str(path) for path in ops.tree_paths({"line": line, "stack": stacked})] == [
        "line.slope",
        "line.start",
        "stack.0.a",
        "stack.1",
    ]
    assert str(ops.tree_flatten(Line(1.0, [2.0]))[1]).startswith("Line(slope: *, start: list(*), static=(<class")
    assert str(ops.tree_flatten(stacked)[1]) == "Stack(dict(a: *), *, static=None)"


NODES = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.builds(Line, inner, inner, st.sampled_from("ms"))
        | st.builds(Dashed, inner, inner)
        | st.lists(inner, max_size=3).map(Stack)
        | st.builds(Linear, inner, inner, st.text(max_size=2), heads=st.integers() | st.booleans())
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=10,
)


@given(NODES)
def test_unflatten_inverts_flatten(tree: Any) -> None:
    leaves, treedef = ops.tree_flatten(tree)
    assert ops.tree_unflatten(treedef, leaves) == tree
    assert ops.tree_flatten(ops.tree_map(lambda leaf: leaf, tree)) == (leaves, treedef)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert hash(treedef) == hash(ops.tree_flatten(tree)[1])
    assert treedef.leaves == len(leaves) == len(ops.tree_paths(tree)) == len(set(ops.tree_paths(tree)))


def test_a_class_is_registered_once(fresh: type) -> None:
    tree = [fresh(2.0)]
    assert len(ops.tree_leaves(tree)) == 1
    ops.register_node(fresh, lambda node: ([node.value], None), lambda _, children: fresh(*children))
    assert ops.tree_leaves(tree) == [2.0]
    with pytest.raises(ArgumentError, match="Fresh is registered already"):
        ops.register_node(fresh, lambda node: ([], None), lambda _, children: fresh())
    assert ops.tree_leaves(tree) == [2.0]


def test_what_a_class_holds_is_searched_from_its_registration_on(fresh: type) -> None:
    fresh.__array__ = None  # type: ignore[attr-defined]  # a class of arrays is not searched
    held = [[], fresh(cell := Parameter([1.0]))]
    assert instances_in(held, Parameter) == []
    ops.register_node(fresh, lambda node: ([node.value], None), lambda _, children: fresh(*children))
    assert instances_in(held, Parameter) == [cell]


def test_the_nearest_registered_base_counts(fresh: type) -> None:
    inner = type("Inner", (fresh,), {})
    assert len(ops.tree_leaves(inner(3.0))) == 1
    ops.register_node(fresh, lambda node: ([node.value], type(node)), lambda kind, children: kind(*children))
    assert ops.tree_leaves(inner(3.0)) == [3.0]
    before = ops.tree_flatten(inner(3.0))[1]
    ops.register_node(inner, lambda node: ([node.value, 4.0], None), lambda _, children: inner(children[0]))
    assert ops.tree_leaves(inner(3.0)) == [3.0, 4.0]
    assert type(ops.tree_unflatten(before, [5.0])) is inner
    assert ops.tree_leaves(fresh(3.0)) == [3.0]


def test_a_registered_dict_is_no_longer_walked_by_its_keys() -> None:
    class Config(collections.UserDict[str, Any]):
        pass

    assert len(ops.tree_leaves(Config(a=1))) == 1
    ops.register_node(Config, lambda config: (dict(config), None), lambda _, children: Config(children))
    assert ops.tree_map(lambda leaf: leaf + 1, Config(a=1)) == Config(a=2)


@pytest.mark.parametrize("cls", [dict, list, tuple, type(None), object, int, str, bool, Mode.TRAIN, 3])
def test_what_cannot_be_registered_is_refused(cls: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"register_node\(\)"):
        ops.register_node(cls, lambda node: ([], None), lambda _, children: None)


def test_functions_must_be_functions(fresh: type) -> None:
    for pair in ((None, abs), (abs, "unflatten")):
        with pytest.raises(ArgumentTypeError, match=r"takes a function as (un)?flatten, not"):
            ops.register_node(fresh, *pair)  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [None, [], ([],), (3, None), ({1, 2}, None), ("ab", None), ([], None, None)])
def test_a_wrong_flatten_is_named(fresh: type, found: Any) -> None:
    ops.register_node(fresh, lambda node: found, lambda _, children: fresh())
    with pytest.raises(ArgumentTypeError, match=r"flatten function of .*Fresh must return a pair \(children, static\)"):
        ops.tree_leaves({"a": fresh()})


def test_a_wrong_unflatten_is_named(fresh: type) -> None:
    ops.register_node(fresh, lambda node: ([node.value], None), lambda _, children: children)
    with pytest.raises(ArgumentTypeError, match=r"unflatten function of .*Fresh must return an object of that class"):
        ops.tree_map(abs, fresh(-1.0))
