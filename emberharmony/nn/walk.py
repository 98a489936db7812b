"""Finds the modules, parameters and buffers of a model in attributes, and in lists, tuples and dicts there.

The cells are found when somebody asks for names, so a call of a layer costs one frame, and `__setattr__` registers
nothing. A parameter in an object of another kind would have no name, and its value would be lost when the model is
saved; so the walk compares its cells with all parameters below the module and refuses such a model. It does not enter
objects of the standard library, since one attribute such as a logger would lead to all loggers of the process.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from emberharmony import Parameter
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, ArgumentTypeError
from emberharmony.core.state.locations import MADE
from emberharmony.core.trees.objects import held_leaves, instances_in


class Holder:
    """The base of `Module`: an object whose attributes are searched for modules, parameters and buffers."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for listener in MADE:
            listener(cls)

    def members(self) -> Iterator[tuple[str, Any]]:
        """Yields (name, value) for each attribute; containers override it to yield their members."""
        yield from vars(self).items()

    def put_member(self, key: str, member: Any) -> None:
        """Sets a member by its key, by default an attribute; containers override it."""
        setattr(self, key, member)


H = TypeVar("H", bound=Holder)


class Place(NamedTuple):
    """The place of a module in a model: its holder and its attribute or key there.

    Attributes:
        holder: the module, list, tuple or dict that holds it.
        key: its attribute, position or key there.
        module: the module.
    """

    holder: Any
    key: Any
    module: Holder

    def replace_module(self, module: Holder) -> None:
        """Replaces the module in this place by another one.

        Raises:
            ArgumentTypeError: if the place is in a tuple.
        """
        if isinstance(self.holder, (list, dict)):
            self.holder[self.key] = module
        elif isinstance(self.holder, tuple):
            raise ArgumentTypeError("a module in a tuple cannot be replaced: keep the modules in a list")
        else:
            self.holder.put_member(self.key, module)


_PLAIN = frozenset((bool, int, float, str, bytes, type(None)))
"""Classes of plain values, such as numbers, that contain no modules or parameters and are skipped fast."""


class _Foreign(dict[type, bool]):
    """A cache that tells for a class whether it is a layer or parameter class of another library."""

    def __missing__(self, cls: type) -> bool:
        names_and_libraries = ((base.__name__, base.__module__.partition(".")[0]) for base in cls.__mro__)
        self[cls] = is_foreign = any(
            name in _TRAINED and library in _LIBRARIES for name, library in names_and_libraries
        )
        return is_foreign


_TRAINED = ("Module", "Layer", "Parameter", "Variable")
_LIBRARIES = ("torch", "mlx", "keras", "flax", "equinox")
_IS_FOREIGN = _Foreign()


def foreign_class_text(value: Any) -> str:
    """Returns a text with the class of a layer or parameter of another library; empty for other objects."""
    cls = value.__class__
    return f"a {cls.__module__.partition('.')[0]} {cls.__name__}" if _IS_FOREIGN[cls] else ""


class _Contents:
    """The direct contents of a module: its parameters and buffers, and the places of inner modules, by name."""

    def __init__(self, owner: Holder) -> None:
        self.cells: list[tuple[str, Cell]] = []
        self.places: list[tuple[str, Place]] = []
        for name, value in owner.members():
            if value.__class__ not in _PLAIN:
                self._add_value(name, value, owner, name)
        if len(self.cells) > 1:
            self.cells.sort(key=lambda pair: not isinstance(pair[1], Parameter))

    def _add_value(self, name: str, value: Any, holder: Any, key: Any) -> None:
        if isinstance(value, Cell):
            self.cells.append((name, value))
        elif isinstance(value, Holder):
            self.places.append((name, Place(holder, key, value)))
        elif _IS_FOREIGN[value.__class__]:
            raise ArgumentTypeError(
                f"{name} is {foreign_class_text(value)}, which would not be trained or saved: use the layer of "
                f"emberharmony.nn, or emberharmony.from_torch(module, example_inputs)"
            )
        elif isinstance(value, dict):
            for item_key, item in value.items():
                if item.__class__ not in _PLAIN:
                    self._add_value(f"{name}.{item_key}", item, value, item_key)
        elif isinstance(value, (list, tuple)):
            for position, item in enumerate(value):
                if item.__class__ not in _PLAIN:
                    self._add_value(f"{name}.{position}", item, value, position)


class _Met(NamedTuple):
    """A module found in a model: its name, its place and its direct contents."""

    name: str
    place: Place
    contents: _Contents


def _modules_with_places(root: Holder) -> Iterator[_Met]:
    """Yields the modules of a model, outer ones first; a module in two places is yielded twice.

    Raises:
        ArgumentError: if a module holds itself, directly or through its parts.
    """
    name_by_id: dict[int, str] = {}

    def walk_module(name: str, place: Place) -> Iterator[_Met]:
        module = place.module
        if id(module) in name_by_id:
            outer_name = name_by_id[id(module)] or type(root).__name__
            raise ArgumentError(
                f"{type(root).__name__} contains itself: {name} is {outer_name} again; keep references to outer "
                "modules out "
                f"of the attributes"
            )
        name_by_id[id(module)] = name
        contents = _Contents(module)
        yield _Met(name, place, contents)
        for child_name, inner_place in contents.places:
            yield from walk_module(f"{name}.{child_name}" if name else child_name, inner_place)
        del name_by_id[id(module)]

    return walk_module("", Place(None, None, root))


def named_modules(root: Holder) -> Iterator[tuple[str, Holder]]:
    """Yields the name of each module and the module, each once."""
    seen_ids: set[int] = set()
    for name, module_place, _ in _modules_with_places(root):
        if id(module_place.module) not in seen_ids:
            seen_ids.add(id(module_place.module))
            yield name, module_place.module


def place_by_name(root: Holder) -> dict[str, Place]:
    """Returns the place of each module in a model by its name."""
    return {name: module_place for name, module_place, _ in _modules_with_places(root) if name}


def inner_modules(root: Holder) -> list[tuple[str, Holder]]:
    """Returns the modules directly in another one, with their names there."""
    root_contents = next(_modules_with_places(root))
    return [(name, module_place.module) for name, module_place in root_contents.contents.places]


def direct_cells(root: Holder) -> list[tuple[str, Cell]]:
    """Returns the parameters and buffers directly in a module, with their names there."""
    return next(_modules_with_places(root)).contents.cells


def children(root: Holder) -> list[Holder]:
    """Returns the modules directly in another one, each once."""
    return list({id(module): module for _, module in inner_modules(root)}.values())


def named_cells_of_all_places(root: Holder) -> Iterator[tuple[str, Cell]]:
    """Yields the name of each parameter and buffer, and the cell; one that stands in two places has both names.

    Raises:
        ArgumentError: if an object that is not a module holds parameters, because these would have no name.
    """
    saved_cells: set[Cell] = set()
    for name, _, contents in _modules_with_places(root):
        for own_name, cell in contents.cells:
            saved_cells.add(cell)
            yield f"{name}.{own_name}" if name else own_name, cell
    if any(cell not in saved_cells for cell in instances_in(root, Parameter)):
        path, holder = next(
            (held_object.path, held_object.holder)
            for held_object in held_leaves(root)
            if isinstance(held_object.value, Parameter) and held_object.value not in saved_cells
        )
        raise ArgumentError(
            f"{type(root).__name__}: the parameter at {path} is held by a {type(holder).__name__}, "
            f"whose parameters are not saved: make {type(holder).__name__} an nn.Module"
        )


def named_cells(root: Holder) -> Iterator[tuple[str, Cell]]:
    """Yields the name of each parameter and buffer, and the cell, each once."""
    seen_cells: set[Cell] = set()
    for name, cell in named_cells_of_all_places(root):
        if cell not in seen_cells:
            seen_cells.add(cell)
            yield name, cell


def cells(root: Holder) -> list[Cell]:
    """Returns the parameters and buffers of a module, each once."""
    return [cell for _, cell in named_cells(root)]
