"""The choice of the backend: `ops.set_backend`, `ops.use_backend` and related functions.

The first of these that is set wins: a `use_backend` block; `set_backend` in this process; the environment variable
`EMBERHARMONY_BACKEND`; the persisted setting; the automatic choice.
"""

import atexit
import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from emberharmony.backend.base import Backend
from emberharmony.backend.discovery import (
    BUILTIN,
    OPTIONAL,
    backend_names,
    create_backend,
    default_backend_name,
    is_installed,
    load,
    loaded_backends,
)
from emberharmony.core import selection
from emberharmony.core.code_flags import ASYNC_GENERATOR, COROUTINE, GENERATOR
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendMismatchError,
    EmberError,
    SettingsWarning,
)
from emberharmony.core.state import checked_mode, settings
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import tree_leaves
from emberharmony.core.types import BackendLike, BackendName

if TYPE_CHECKING:
    from emberharmony.backend.protocol import TensorBackend

F = TypeVar("F", bound=Callable[..., Any])
ENVIRONMENT = "EMBERHARMONY_BACKEND"


def set_backend(name: BackendLike, *, persist: bool = False) -> None:
    """Makes the named backend active for the whole process, in all threads; after an error the old one stays active.

    Args:
        name: "numpy", "torch", "mlx", "jax", "dask" or a plugin's name.
        persist: whether to write the name to the settings file too, for later processes.

    Raises:
        BackendNotFoundError: if the name is unknown.
        BackendUnavailableError: if the backend's library is missing.
        OSError: if the setting cannot be written.

    Example:
        >>> ops.set_backend("numpy")
        >>> ops.get_backend()
        'numpy'
    """
    backend = load(name)
    if persist:
        settings.write("backend", name, selection.switch_steps(backend, "set_backend, persisted"))
    else:
        selection.switch_backend(backend, "set_backend")


def get_backend() -> BackendName:
    """Returns the name of the active backend."""
    backend_name = BackendName(selection.current().name)
    _warn_of_late_variable()
    return backend_name


def current() -> "TensorBackend":
    """Returns the active backend object; its methods are the ops: `current().sin(x)`."""
    backend: TensorBackend = selection.current()
    return backend


def choose_backend() -> tuple[Backend, str]:
    """Returns the backend that the environment, the settings file or the machine selects, and which of them did so."""
    backend_name = os.environ.get(ENVIRONMENT)
    _VARIABLE.append(backend_name)
    atexit.register(_warn_of_late_variable)
    if backend_name:
        return _load_for(backend_name, f"the environment variable {ENVIRONMENT}"), f"{ENVIRONMENT}"
    saved_name = settings.read("backend")
    if saved_name is not None:
        asker_text = (
            f"the settings file {settings.path()}; `emberharmony backend set` and `emberharmony backend unset` edit it"
        )
        return _load_for(saved_name, asker_text), str(settings.path())
    return load(default_backend_name()), "automatic"


_VARIABLE: list[str | None] = []
"""The value of the environment variable when the backend was chosen; empty before, and after the warning."""


def _warn_of_late_variable() -> None:
    """Warns once if the program set the environment variable after the backend was chosen."""
    current_name = os.environ.get(ENVIRONMENT)
    if (
        not _VARIABLE
        or not current_name
        or current_name == _VARIABLE[-1]
        or selection.backend_source() == "set_backend"
    ):
        return
    active_name = selection.current().name
    if current_name != active_name:
        _VARIABLE.clear()
        warnings.warn(
            f"{ENVIRONMENT} was set to {current_name!r} after the first op had chosen {active_name!r}, so it had no "
            f"effect: set it before that, or call ops.set_backend({current_name!r})",
            SettingsWarning,
            stacklevel=3,
        )


def _load_for(name: str, asker: str) -> Backend:
    try:
        return load(name)
    except EmberError as error:
        raise type(error)(f"{error} ({name!r} was asked for by {asker})") from error


def load_at_import() -> None:
    """Loads the backend of the environment variable if it must be loaded before the first call of an op.

    The choice waits for the first call, so a program that sets its backend does not load two. But JAX's backend and
    plug-ins may configure their libraries, which a program may use itself before that, and Dynamo cannot trace a first
    call. A backend that fails to load raises its error at the first call too, so `ops.set_backend` can still be used.
    """
    environment_name = os.environ.get(ENVIRONMENT)
    if environment_name == "torch":
        from emberharmony.backend import first_trace  # imported here, because it watches all imports from then on

        first_trace.STEPS.append(choose_if_named)
        if first_trace.DYNAMO in sys.modules:
            choose_if_named()
    elif environment_name not in BUILTIN:
        choose_if_named()
    if checked_mode.OUTSIDE - {"bounds"}:
        from emberharmony.transforms.checks.block import check_this_thread

        check_this_thread(checked_mode.OUTSIDE)


def choose_if_named() -> None:
    """Chooses the backend of a process without one, if the environment or the settings file names one that can load."""
    if os.environ.get(ENVIRONMENT) or settings.exists():
        with contextlib.suppress(EmberError):
            selection.current()


OWNERS: dict[type, Backend] = {}
"""By tensor type, the backend whose tensors were seen; subclasses are left out, because a program may make many."""


def backend_of(*trees: Any) -> Backend | None:
    """Returns the backend whose tensors the trees hold; None if they hold no tensor.

    NumPy arrays count as host data if there are tensors of another backend.

    Args:
        *trees: tensors, and nested dicts, lists, tuples and modules that hold some.

    Raises:
        ArgumentTypeError: if a tensor belongs to no loaded or built-in backend.
        BackendMismatchError: if the trees hold tensors of two backends other than NumPy.
    """
    backend_by_name: dict[str, Backend] = {}
    for leaf in tree_leaves(trees):
        backend = owning_backend_of(leaf)
        if backend is not None:
            backend_by_name[backend.name] = backend
    if len(backend_by_name) > 1:
        backend_by_name.pop("numpy", None)
    if len(backend_by_name) > 1:
        raise BackendMismatchError(
            f"tensors of the backends {' and '.join(sorted(backend_by_name))} are mixed; convert one kind"
        )
    return next(iter(backend_by_name.values()), None)


def owning_backend_of(leaf: Any) -> Backend | None:
    """Returns the backend that a tensor belongs to; None if the object is not a tensor.

    Raises:
        ArgumentTypeError: if a tensor belongs to no loaded or built-in backend.
    """
    owning_backend = OWNERS.get(leaf.__class__)
    if owning_backend is not None:
        return owning_backend
    if isinstance(leaf, TensorProxy):  # such an object counts as a tensor on every backend
        traced_backend: Backend = leaf.backend
        return traced_backend
    for backend in loaded_backends():
        if backend.is_tensor(leaf):
            if leaf.__class__ is backend.tensor_type:
                OWNERS.setdefault(leaf.__class__, backend)
            return backend
    backend_of_leaf = getattr(leaf, "backend", None)
    if isinstance(backend_of_leaf, Backend):  # a tensor without values, inside of eval_shape
        return backend_of_leaf
    library_name = type(leaf).__module__.partition(".")[0]
    library_name = "jax" if library_name == "jaxlib" else library_name
    if (library_name in BUILTIN or library_name in OPTIONAL) and hasattr(leaf, "dtype"):
        return load(library_name)
    if hasattr(leaf, "__dlpack__"):
        raise ArgumentTypeError(
            f"no loaded backend has tensors of type {type(leaf).__module__}.{type(leaf).__qualname__} "
            f"(loaded: {', '.join(b.name for b in loaded_backends()) or 'none'}); "
            "load theirs first with create_backend(name)"
        )
    return None


class use_backend(selection.Override):  # noqa: N801  (a context manager that reads as a function, like contextlib's)
    """An override of the backend for this thread or asyncio task: a context manager and a decorator.

    Blocks nest, and leaving one by an exception restores the former backend too. Other threads and tasks are not
    affected, but tasks that start inside a block inherit it.

    Args:
        name: a backend's name, or a backend object; None takes the backend of `like`.
        like: tensors, or a tree of them, whose backend is used; without a tensor the active backend stays. None takes
            `name`.

    Raises:
        ArgumentError: unless exactly one of `name` and `like` is given.
        ArgumentTypeError: if a tensor in `like` belongs to no loaded or built-in backend.
        BackendMismatchError: if `like` holds tensors of two backends other than NumPy.
        BackendNotFoundError: if the name is unknown.
        BackendUnavailableError: if the backend's library is missing.

    Example:
        >>> with ops.use_backend("numpy"):
        ...     ops.get_backend()
        'numpy'
    """

    __slots__ = ("_like", "_name")

    def __init__(self, name: "BackendLike | Backend | TensorBackend | None" = None, *, like: Any = None) -> None:
        if (name is None) == (like is None):
            raise ArgumentError("use_backend takes either a backend's name or like=tensor")
        self._watch = None
        self._name, self._like = name, like
        self._backend = OWNERS.get(like.__class__)

    if TYPE_CHECKING:  # for type checkers alone, because a method that calls `super().__enter__` would cost a frame

        def __enter__(self) -> "TensorBackend":
            """Starts the override and returns its backend."""
            raise NotImplementedError

    def _choose_backend(self) -> Backend:
        if self._name is None:
            return backend_of(self._like) or selection.current()
        backend = self._name if isinstance(self._name, Backend) else load(cast("BackendLike", self._name))
        self._backend = backend
        return backend

    def __call__(self, function: F) -> F:
        """Returns a function, or coroutine function, that runs `function` under this override at each call.

        Raises:
            ArgumentTypeError: if `function` is a generator function.
        """
        code_flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if code_flags & (GENERATOR | ASYNC_GENERATOR):
            raise ArgumentTypeError(
                f"use_backend cannot decorate the generator function {function.__name__}: its body runs outside the "
                f"call; write `with ops.use_backend(...)` around the code between two yields"
            )
        if code_flags & COROUTINE:

            @functools.wraps(function)
            async def await_inside(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return await_inside  # type: ignore[return-value]

        @functools.wraps(function)
        def call_in_batch(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call_in_batch  # type: ignore[return-value]


def available_backends() -> dict[BackendName, dict[str, Any]]:
    """Returns the installed backends by name, each with "version", "loaded" and "devices".

    The devices of a backend that is not loaded yet are None, because listing them would import its library.
    """
    backend_by_name = {backend.name: backend for backend in loaded_backends()}
    facts_by_backend: dict[BackendName, dict[str, Any]] = {}
    for name in backend_names():
        if name in backend_by_name:
            devices = list(backend_by_name[name].get_available_devices())
            facts_by_backend[name] = {"version": backend_by_name[name].version, "loaded": True, "devices": devices}
        elif is_installed(name):
            facts_by_backend[name] = {"version": _package_version(name), "loaded": False, "devices": None}
    return facts_by_backend


def _package_version(name: str) -> str | None:
    from importlib import metadata  # imported here, because it takes 20 ms and only this listing needs it

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


selection.install_chooser(choose_backend)

__all__ = [
    "available_backends",
    "backend_of",
    "create_backend",
    "current",
    "get_backend",
    "set_backend",
    "use_backend",
]
