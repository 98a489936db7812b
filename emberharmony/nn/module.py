"""`Module`: the base of layers and models."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from reprlib import recursive_repr
from typing import Any, TypeVar

from emberharmony import Buffer, Parameter, ops, to_backend
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, TrainingWarning, brief, suggest
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.types import BackendLike, DTypeLike
from emberharmony.nn import locate as locate  # errors name the layer
from emberharmony.nn import nodes, state, walk

M = TypeVar("M", bound="Module")


class Module(walk.Holder):
    """The base class of layers and models: plain objects, whose parameters are found in their attributes.

    A subclass makes its parameters and parts in `__init__`, which need not call that of `Module`, and defines
    `__call__`. A `Parameter` is trained, a `Buffer` is state that is not. Modules, parameters and buffers are found in
    attributes, and in the lists, tuples and dicts there; their names are joined by dots, as in `blocks.0.weight`, and
    are those of PyTorch.

    A module is a node of trees: `ops.grad`, `ops.vmap` and `ops.tree_map` take it, its parameters and buffers being
    the leaves. All other attributes belong to its structure.

    Attributes:
        training: whether layers such as `Dropout` and `BatchNorm1d` behave as in training; `train` and `eval` set it.

    Example:
        >>> from emberharmony import nn, optim
        >>> class Line(nn.Module):
        ...     def __init__(self):
        ...         self.slope, self.start = nn.Parameter(0.0), nn.Parameter(0.0)
        ...     def __call__(self, x):
        ...         return ops.add(ops.multiply(self.slope, x), self.start)
        >>> line, x = Line(), ops.linspace(-1.0, 1.0, 9)
        >>> optimizer = optim.Adam(line.parameters(), lr=0.1)
        >>> for _ in range(150):
        ...     loss = ops.backward(lambda: ops.sum(ops.square(line(x) - (3.0 * x + 1.0))), line)
        ...     optimizer.step()
        >>> [round(float(value), 1) for value in line.state_dict().values()]
        [3.0, 1.0]
    """

    training: bool = True

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute, and refuses a plain tensor in the place of a parameter or buffer.

        Raises:
            ArgumentTypeError: if a tensor would replace a parameter or buffer, so that none is trained or saved.
        """
        old_attribute = self.__dict__.get(name)
        if value.__class__ is bool:
            module_class = type(self)
            message_start = f"{module_class.__name__}.{name} = {value} "
            if not value and name in ("trainable", "requires_grad"):
                warnings.warn(f"{message_start}freezes no parameter: use freeze()", TrainingWarning, stacklevel=2)
            elif inspect.isfunction(getattr(module_class, name, None)):
                warnings.warn(
                    f"{message_start}hides the method, which is called: {name}()", TrainingWarning, stacklevel=2
                )
        if isinstance(old_attribute, Cell) and not isinstance(value, (Cell, Module)) and hasattr(value, "shape"):
            raise ArgumentTypeError(
                f"{type(self).__name__}.{name} is a {type(old_attribute).__name__}, which a tensor would replace: "
                f"assign {name}.value = tensor, or a new nn.{type(old_attribute).__name__}(tensor)"
            )
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the output for an input; subclasses define it.

        Raises:
            NotImplementedError: if the subclass does not define it.
        """
        name = type(self).__name__
        method_name = next((method for method in ("forward", "call") if hasattr(self, method)), "")
        hint = f"rename {method_name}() to __call__()" if method_name else "define it, as def __call__(self, x):"
        if hasattr(self, "__len__"):
            hint = "it holds modules, and does not know how they follow each other: loop over it, or use nn.Sequential"
        raise NotImplementedError(f"{name} does not define __call__(): {hint}")

    def named_modules(self) -> Iterator[tuple[str, "Module"]]:
        """Yields the name of each module, and the module; the first is this one, with an empty name.

        A module that stands in two places is yielded once.
        """
        yield from ((name, child) for name, child in walk.named_modules(self) if isinstance(child, Module))

    def children(self) -> list["Module"]:
        """Returns the modules that are directly in this one, each once."""
        return [child for child in walk.children(self) if isinstance(child, Module)]

    def named_parameters(self, trainable: bool | None = None) -> Iterator[tuple[str, Parameter]]:
        """Yields (name, parameter) for each parameter in this module and inner ones; a shared parameter comes once.

        Args:
            trainable: True or False gives only the parameters that are, or are not, trainable; None gives all.
        """
        for name, cell in walk.named_cells(self):
            if isinstance(cell, Parameter) and trainable in (None, cell.trainable):
                yield name, cell

    def parameters(self, trainable: bool | None = None) -> list[Parameter]:
        """Returns the parameters, each once, in the order of `named_parameters`.

        Args:
            trainable: True or False gives only the parameters that are, or are not, trainable; None gives all.
        """
        return [cell for _, cell in self.named_parameters(trainable)]

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yields (name, buffer) for each buffer in this module and inner ones; a shared buffer comes once."""
        for name, cell in walk.named_cells(self):
            if isinstance(cell, Buffer):
                yield name, cell

    def buffers(self) -> list[Buffer]:
        """Returns the buffers, each once, in the order of `named_buffers`."""
        return [cell for _, cell in self.named_buffers()]

    def build(self, shape: tuple[int, ...]) -> None:
        """Makes the parameters whose shapes depend on the input, if there are none yet; `nn.build` calls it.

        Args:
            shape: the shape of the input.
        """

    def replace(self: M, name: str, module: "Module") -> M:
        """Puts another module in the place of the one with a name, and returns this module.

        Args:
            name: the name of a module in this one, such as "encoder.0.attention".
            module: the module that takes its place.

        Raises:
            ArgumentError: if no module has the name.
            ArgumentTypeError: if `module` is not a module.

        Example:
            >>> net = nn.Sequential(nn.Linear(2, 3), nn.Identity())
            >>> print(net.replace("1", nn.Linear(3, 1)))
            Sequential(
              (0): Linear(2, 3)
              (1): Linear(3, 1)
            )
        """
        if not isinstance(module, Module):
            raise ArgumentTypeError(f"replace() takes a module, not {brief(module)}")
        places_by_name = walk.place_by_name(self)
        if name not in places_by_name:
            raise ArgumentError(f"{type(self).__name__} has no module {name!r}{suggest(name, list(places_by_name))}")
        places_by_name[name].replace_module(module)
        return self

    def state_dict(self, *, host: bool = False, persistent_only: bool = True, layout: str = "torch") -> dict[str, Any]:
        """Returns the tensors of all parameters and buffers by name, in PyTorch's order.

        A parameter that stands in two places has both names. The tensors are those that the module uses, not copies,
        except those that another layout computes.

        Args:
            host: whether to return NumPy arrays instead of tensors of the active backend.
            persistent_only: whether to leave out buffers that are not persistent.
            layout: whose names and axes the tensors have: "torch", "mlx" or "keras"; `docs/weights.md` has the table.

        Raises:
            ArgumentError: if an object that is not a module holds parameters, which would have no name, or the layout
                is unknown.

        Example:
            >>> net = nn.Sequential(nn.Conv2d(3, 8, 5))
            >>> {name: tuple(tensor.shape) for name, tensor in net.state_dict(layout="mlx").items()}
            {'layers.0.weight': (8, 5, 5, 3), 'layers.0.bias': (8,)}
        """
        return state.state_dict(self, host, persistent_only, layout)

    def convert_state_dict(
        self, values: "state.Values", *, source: str = "torch", layout: str = "torch"
    ) -> dict[str, Any]:
        """Returns tensors of a module of this kind in another layout; this module does not change.

        Args:
            values: tensors of any backend, or arrays, by their names in the layout `source`.
            source: the layout of `values`: "torch", "mlx" or "keras".
            layout: the layout of the results.

        Raises:
            ArgumentError: if a layout is unknown.
            StateDictError: with all names that are missing, unexpected, or have a wrong shape.

        Example:
            >>> tensors = {"kernel": [[1.0], [2.0]], "bias": [3.0]}
            >>> found = nn.Linear(2, 1).convert_state_dict(tensors, source="keras")
            >>> {name: tensor.tolist() for name, tensor in found.items()}
            {'weight': [[1.0, 2.0]], 'bias': [3.0]}
        """
        return state.converted_state_dict(self, values, source, layout)

    def load_state_dict(
        self,
        values: "state.Values",
        *,
        strict: bool = True,
        rename: Callable[[str], str] | None = None,
        keep_dtype: bool = True,
        layout: str = "torch",
    ) -> "state.Loaded":
        """Assigns tensors to the parameters and buffers by name, all of them or, if there is an error, none.

        Args:
            values: tensors of any backend, or arrays, by name.
            strict: whether missing and unexpected names raise an error. Wrong shapes always do.
            rename: returns the name in this module for a name in `values`; None keeps the names.
            keep_dtype: whether parameters keep their dtype, to which tensors are cast; otherwise they take that of the
                tensor.
            layout: the layout of `values`: "torch", "mlx" or "keras".

        Returns:
            the names that were loaded, that are missing, and that were not expected, and those that were cast.

        Raises:
            ArgumentError: if the layout is unknown.
            StateDictError: with all names that are missing, unexpected, or have a wrong shape, and with the layout
                that they fit if it is another one.

        Example:
            >>> layer = nn.Linear(2, 1)
            >>> layer.load_state_dict({"weight": [[1.0, 2.0]], "bias": [3.0]}).loaded
            ['weight', 'bias']
            >>> layer([1.0, 1.0]).tolist()
            [6.0]
        """
        steps, loaded_names = state.loading_steps_and_names(self, values, strict, rename, keep_dtype, layout)
        commit(steps)
        return loaded_names

    def loading_steps(self, values: "state.Values") -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them.

        Args:
            values: tensors by name, as `load_state_dict` takes them.
        """
        return state.loading_steps_and_names(self, values, True, None, True, "torch")[0]

    def to(self: M, *, dtype: DTypeLike | None = None, device: Any = None, backend: BackendLike | None = None) -> M:
        """Casts or moves all parameters and buffers, all of them or, if there is an error, none; returns the module.

        Args:
            dtype: the floating dtype that floating parameters and buffers take, their gradients too; None leaves it.
            device: a device of the active backend; None leaves it.
            backend: the backend to move to; a module also follows the active backend by itself. None leaves it.

        Raises:
            DTypeError: if `dtype` is not floating, or the backend lacks a dtype.
        """
        if dtype is not None or device is not None:
            commit(state.cast_steps(walk.cells(self), dtype, device))
        return self if backend is None else to_backend(self, backend)

    def train(self: M, mode: bool = True) -> M:
        """Sets this module and all inner modules to training mode, or another mode, and returns this module.

        Args:
            mode: whether modules behave as in training; else as in evaluation.
        """
        steps: list[Step] = [assignment(module, "training", bool(mode)) for _, module in self.named_modules()]
        commit(steps)
        return self

    def eval(self: M) -> M:
        """Sets this module and all inner modules to evaluation mode, and returns this module."""
        return self.train(False)

    def freeze(self: M, *patterns: str) -> M:
        """Makes parameters untrainable, and returns the module.

        Args:
            patterns: names of parameters or modules, in which `*` stands for any text; without one, all parameters.

        Raises:
            ArgumentError: if a pattern fits no parameter.

        Example:
            >>> net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
            >>> [name for name, _ in net.freeze("0.*").named_parameters(trainable=True)]
            ['1.weight', '1.bias']
        """
        return self._set_trainable("freeze", patterns, False)

    def unfreeze(self: M, *patterns: str) -> M:
        """Makes parameters trainable; see `freeze`.

        Args:
            *patterns: names of parameters or modules, in which `*` stands for any text; without one, all parameters.
        """
        return self._set_trainable("unfreeze", patterns, True)

    def _set_trainable(self: M, method: str, patterns: tuple[str, ...], trainable: bool) -> M:
        cell_by_name = dict(walk.named_cells_of_all_places(self))
        distinct_cell_by_key: dict[Cell, None] = {}
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise ArgumentTypeError(
                f"{method}() takes names, such as '0.weight' or 'encoder.*', not {brief(patterns)}; a layer has the "
                f"method itself: model.layer.{method}()"
            )
        for pattern in patterns or ("*",):
            fitting_cells = [
                cell
                for name, cell in cell_by_name.items()
                if isinstance(cell, Parameter) and (fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*"))
            ]
            if not fitting_cells and patterns:
                hint = suggest(pattern, list(cell_by_name)) or f" (known: {', '.join(list(cell_by_name)[:6])})"
                raise ArgumentError(f"{method}(): {pattern!r} fits no parameter of {type(self).__name__}{hint}")
            distinct_cell_by_key.update(dict.fromkeys(fitting_cells))
        commit([assignment(cell, "trainable", trainable) for cell in distinct_cell_by_key])
        return self

    def apply(self: M, fn: "Callable[[Module], Any]") -> M:
        """Calls a function with each module, the innermost first, and returns this module.

        Args:
            fn: a function of a module, whose result is ignored.
        """
        for _, module in reversed(list(self.named_modules())):
            fn(module)
        return self

    def summary(self, *specs: Any, depth: int | None = None) -> str:
        """Returns a table of all modules: names, classes, output shapes, parameters and bytes.

        Args:
            specs: for the output shapes, what the module is called with: tensors or `TensorSpec`. Nothing is computed.
            depth: how many levels are shown; None shows all.
        """
        # The module is imported only here, because only callers of `summary` need it.
        from emberharmony.nn.summary import summary

        return summary(self, specs, depth)

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the table of `summary`."""
        from emberharmony.nn.summary import summary_html

        return summary_html(self)

    @recursive_repr()
    def __repr__(self) -> str:
        inner_texts = [f"({name}): {module!r}" for name, module in walk.inner_modules(self)]
        class_name, options_text = type(self).__name__, ", ".join(_constructor_options(self))
        if not inner_texts:
            return f"{class_name}({options_text})"
        repr_lines = [
            line
            for text_block in ([options_text] if options_text else []) + inner_texts
            for line in text_block.splitlines()
        ]
        return "\n  ".join([f"{class_name}(", *repr_lines]) + "\n)"


def _constructor_options(module: Module) -> list[str]:
    """Returns the arguments of the constructor that attributes of the same name hold, if they are not the defaults."""
    # The module is imported only here, because only the `repr` of a module needs it.
    import inspect

    shown_items: list[str] = []
    for parameter in list(inspect.signature(type(module)).parameters.values()):
        value = getattr(module, parameter.name, Cell)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or value is Cell:
            continue
        if isinstance(value, (Cell, Module)) or hasattr(value, "shape") or parameter.name == "rng":
            continue
        if value is None and parameter.default is True:
            value = False
        if parameter.default is parameter.empty:
            shown_items.append(getattr(value, "__name__", None) or repr(value))
        elif value != parameter.default and value != (parameter.default,) * len(value if type(value) is tuple else ()):
            shown_items.append(f"{parameter.name}={value!r}")
    return shown_items


ops.register_node(Module, nodes.flatten_module, nodes.unflatten_module)
