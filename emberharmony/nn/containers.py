"""Containers: modules that consist of other modules, such as `Sequential` and `ModuleList`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest
from emberharmony.nn.module import Module
from emberharmony.nn.walk import foreign_class_text
from emberharmony.transforms.parameterless import is_of_pytorch
from emberharmony.types import TensorLike


class _Listed(Module):
    """A module that holds a list of members, whose names are their positions."""

    kind: type = Module

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._list: list[Any] = []
        self.extend(members)

    def members(self) -> Iterator[tuple[str, Any]]:
        yield from ((str(position), member) for position, member in enumerate(self._list))

    def put_member(self, key: str, member: Any) -> None:
        self._list[int(key)] = self._checked_member(member)

    def _checked_member(self, member: Any) -> Any:
        if not isinstance(member, self.kind):
            raise ArgumentTypeError(
                f"{type(self).__name__} holds {self.kind.__name__} objects, not {brief(member)}{_layer_hint(member)}"
            )
        return member

    def append(self, member: Any) -> None:
        """Adds a member at the end of the container."""
        self._list.append(self._checked_member(member))

    def extend(self, members: Iterable[Any]) -> None:
        """Adds several members at the end of the container."""
        self._list += [self._checked_member(member) for member in members]

    def insert(self, position: int, member: Any) -> None:
        """Inserts a member into the container before a position."""
        self._list.insert(position, self._checked_member(member))

    def __getitem__(self, key: Any) -> Any:
        """Returns a member, or for a slice a container of the same class."""
        if not isinstance(key, slice):
            return self._list[key]
        new_container = type(self).__new__(type(self))
        vars(new_container).update(vars(self))
        new_container._list = self._list[key]
        return new_container

    def __setitem__(self, position: int, member: Any) -> None:
        self._list[position] = self._checked_member(member)

    def __delitem__(self, key: Any) -> None:
        del self._list[key]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list)


def _layer_hint(member: Any) -> str:
    """Returns a hint for messages: which layer to use in place of an object that is no module."""
    if isinstance(member, str):
        return f": write a layer or a function, as nn.ReLU() or ops.{member if member.isidentifier() else 'relu'}"
    if isinstance(member, (list, tuple)):
        return ": append takes one module, and extend a list of them"
    if isinstance(member, Mapping):
        return ": pass the layers alone, *layers.values(), or use nn.ModuleDict"
    if hasattr(member, "shape"):
        return ", which is the output of a layer or a tensor: pass the layer itself, without calling it"
    if is_of_pytorch(member):
        return ": it is a layer of PyTorch, and those of emberharmony.nn have the same names"
    return ""


class Sequential(_Listed):
    """Calls modules one after the other, each with the output of the one before.

    Args:
        modules: modules, or functions of one tensor, which need no parameters.

    Example:
        >>> net = nn.Sequential(nn.Linear(4, 3), ops.relu, nn.Linear(3, 2))
        >>> tuple(net(ops.zeros((5, 4))).shape), list(net.state_dict())
        ((5, 2), ['0.weight', '0.bias', '2.weight', '2.bias'])
    """

    def __init__(self, *modules: "Module | Callable[[Any], Any]") -> None:
        if len(modules) == 1 and isinstance(modules[0], (list, tuple)):
            raise ArgumentTypeError("Sequential takes modules and no list of them: nn.Sequential(*modules)")
        super().__init__(modules)

    def _checked_member(self, member: Any) -> Any:
        if foreign_layer := foreign_class_text(member):
            raise ArgumentTypeError(
                f"{type(self).__name__} got {foreign_layer}, which would not be trained or saved: use the layer of "
                f"emberharmony.nn, emberharmony.from_torch(module, example_inputs), or for a constant function "
                f"nn.Lambda(lambda x: layer(x))"
            )
        if isinstance(member, type) and issubclass(member, Module):
            name = member.__name__
            raise ArgumentTypeError(f"{type(self).__name__} got the class {name}, which makes layers: write {name}()")
        return super()._checked_member(
            Lambda(member) if callable(member) and not isinstance(member, Module) else member
        )

    def __call__(self, x: Any) -> Any:
        for module in self._list:
            x = module(x)
        return x


class ModuleList(_Listed):
    """A list of modules with the names `0`, `1` and so on; a plain list in an attribute does the same.

    Args:
        members: modules, any iterable of them.

    Example:
        >>> layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(layers[:2]), list(layers.state_dict())[-1]
        (3, 2, '2.bias')
    """


class ParameterList(_Listed):
    """A list of parameters with the names `0`, `1` and so on.

    Args:
        members: parameters; tensors become parameters.

    Example:
        >>> list(nn.ParameterList([ops.zeros(2), ops.ones(3)]).state_dict())
        ['0', '1']
    """

    kind = Parameter

    def _checked_member(self, member: Any) -> Any:
        return super()._checked_member(member if isinstance(member, Parameter) else Parameter(member))


class _Named(Module):
    """A module that holds a dict of members, whose names are their keys."""

    kind: type = Module

    def __init__(self, members: Mapping[str, Any] | None = None) -> None:
        self._dict: dict[str, Any] = {}
        self.update(members or {})

    def members(self) -> Iterator[tuple[str, Any]]:
        yield from self._dict.items()

    def put_member(self, key: str, member: Any) -> None:
        self[key] = member

    def update(self, members: Mapping[str, Any]) -> None:
        """Adds members to the container by name; members of the same name are replaced."""
        for name, member in members.items():
            self[name] = member

    def __setitem__(self, name: str, member: Any) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ArgumentError(f"a name in {type(self).__name__} is text without dots, not {brief(name)}")
        if not isinstance(member, self.kind):
            raise ArgumentTypeError(
                f"{type(self).__name__} holds {self.kind.__name__} objects, not {brief(member)}{_layer_hint(member)}"
            )
        self._dict[name] = member

    def __getitem__(self, name: str) -> Any:
        if name not in self._dict:
            hint = suggest(str(name), self._dict) or f"; it has {', '.join(map(repr, self._dict))}"
            raise ArgumentError(f"{type(self).__name__} has no member {name!r}{hint}")
        return self._dict[name]

    def __delitem__(self, name: str) -> None:
        del self._dict[name]

    def __contains__(self, name: object) -> bool:
        return name in self._dict

    def __len__(self) -> int:
        return len(self._dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict)

    def keys(self) -> Iterable[str]:
        """Returns the names of the members."""
        return self._dict.keys()

    def values(self) -> Iterable[Any]:
        """Returns the members of the container."""
        return self._dict.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns the pairs of name and member."""
        return self._dict.items()


class ModuleDict(_Named):
    """A dict of modules by name; a plain dict in an attribute does the same.

    Args:
        members: modules by name; None makes an empty one.

    Example:
        >>> heads = nn.ModuleDict({"mean": nn.Linear(3, 1), "scale": nn.Linear(3, 1)})
        >>> tuple(heads["scale"]([1.0, 2.0, 3.0]).shape), list(heads.state_dict())[0]
        ((1,), 'mean.weight')
    """


class ParameterDict(_Named):
    """A dict of parameters by name.

    Args:
        members: parameters by name; tensors become parameters. None makes an empty one.

    Example:
        >>> list(nn.ParameterDict({"scale": ops.ones(2)}).state_dict())
        ['scale']
    """

    kind = Parameter

    def __setitem__(self, name: str, member: Any) -> None:
        super().__setitem__(name, member if isinstance(member, Parameter) else Parameter(member))


class Lambda(Module):
    """A function as a module, for `Sequential`.

    Args:
        function: a function; a module that is to be pickled needs one that has a name in its file.

    Example:
        >>> nn.Lambda(ops.square)(3.0).tolist()
        9.0
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentTypeError(f"Lambda takes a function, not {brief(function)}")
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Residual(Module):
    """Adds the output of a module to its input.

    Args:
        module: a module, or modules in a sequence, whose output has the shape of the input.

    Example:
        >>> nn.Residual(nn.Lambda(ops.square))([2.0, 3.0]).tolist()
        [6.0, 12.0]
    """

    def __init__(self, *module: Module) -> None:
        self.module = module[0] if len(module) == 1 else Sequential(*module)

    def __call__(self, x: TensorLike) -> Any:
        return ops.add(x, self.module(x))


class Remat(Module):
    """A module whose intermediate results are computed again in the backward pass, which saves memory.

    Args:
        module: the module; `ops.checkpoint` runs it.

    Example:
        >>> nn.Remat(nn.Lambda(ops.square))([2.0, 3.0]).tolist()
        [4.0, 9.0]
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return ops.checkpoint(self.module)(*args)


class Repeat(Module):
    """Calls a module several times, each time with the output of the time before; the parameters are shared.

    Args:
        module: the module, whose output has the shape of its input.
        times: how many times it is called.

    Example:
        >>> nn.Repeat(nn.Lambda(ops.square), 3)(2.0).tolist()
        256.0
    """

    def __init__(self, module: Module, times: int) -> None:
        if not isinstance(times, int) or times < 0:
            raise ArgumentError(f"Repeat takes a number of times from 0 on, not {brief(times)}")
        self.module, self.times = module, times

    def __call__(self, x: Any) -> Any:
        for _ in range(self.times):
            x = self.module(x)
        return x
