"""Loading of backends by name: those of the package, and plugins found by entry points; none before it is named."""

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from emberharmony.backend.base import Backend
from emberharmony.backend.shared.device import ACCELERATORS, BLOCK_ENTERED, ENVIRONMENT
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import (
    BackendFallbackWarning,
    BackendNotFoundError,
    BackendProtocolError,
    BackendUnavailableError,
    brief,
    suggest,
)
from emberharmony.core.registry import complete
from emberharmony.core.state.handlers import passing_error
from emberharmony.core.types import BackendLike, BackendName

if TYPE_CHECKING:
    import platform

    from emberharmony.backend.protocol import TensorBackend
else:
    platform = Deferred("platform")

ENTRY_POINTS = "emberharmony.backends"
BUILTIN = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}
"""The names of the built-in backends, and the module whose presence makes each one available."""
OPTIONAL = {"jax": "jax", "dask": "dask"}
"""The same for the further backends of the package, which programs that ask for all backends leave out."""
_OWN = BUILTIN | OPTIONAL

_LOADED: dict[str, Backend] = {}

_OTHERS = {
    "cupy": "emberharmony.backend.from_array_api makes a backend of it, see array_libraries in the docs",
    **dict.fromkeys(
        ("tensorflow", "tf"), "programs for TensorFlow run on the others: ops.set_backend('torch') or 'jax'"
    ),
    "keras": "it is a library over others, as this one: ops.set_backend('torch') or 'jax'",
    **dict.fromkeys(("metal", "apple"), "Apple silicon has ops.set_backend('mlx')"),
}
"""By the name of a library that is no backend, what to do in its place."""


def _plugins() -> dict[str, Any]:
    from importlib.metadata import entry_points  # imported here: it takes 20 ms, and built-in names do not need it

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def backend_names() -> list[BackendName]:
    """Returns the names of all known backends: those of the package first, then plugins."""
    return [BackendName(name) for name in (*_OWN, *sorted(set(_plugins()) - set(_OWN)))]


def usual_backend_names() -> list[BackendName]:
    """Returns the names of the installed backends without the optional ones, whose checks take far longer.

    JAX compiles a program for each shape and dtype, and Dask makes a graph of tasks for each call.
    """
    return [name for name in backend_names() if name not in OPTIONAL and is_installed(name)]


def is_installed(name: str) -> bool:
    """Returns whether a plugin, or the library behind a backend of the package, is installed; does not import it."""
    if name not in _OWN:
        return name in _plugins()
    import importlib.util  # imported here: it takes 0.3 ms, and importing `ops` does not need it

    package_name, _, submodule_name = _OWN[name].partition(".")
    try:
        module_spec = importlib.util.find_spec(package_name)
    except ImportError:  # an import hook forbids the library
        return False
    if module_spec is None or not submodule_name:
        return module_spec is not None
    # find_spec("mlx.core") would import the package `mlx`, so look for a file of that name instead.
    folders = module_spec.submodule_search_locations or []
    return any(file.startswith(submodule_name) for folder in folders for file in os.listdir(folder))


_LIBRARIES = {"mlx": "mlx[cpu]" if sys.platform == "linux" else "mlx", "dask": "dask[array]"}
"""What pip installs for a backend, if it is not called as the backend."""


def install_line(name: str) -> str:
    """Returns the command that installs the library behind a backend of the package."""
    return f'pip install "{_LIBRARIES.get(name, name)}"'


def load(name: str) -> Backend:
    """Returns the backend of that name; the first call for a name loads and checks it.

    Raises:
        BackendNotFoundError: if the name is unknown (the message suggests the nearest one), or not a string.
        BackendProtocolError: if the backend lacks primitives.
        BackendUnavailableError: if its library is missing or fails to import; the message has the install line.
        DeviceError: if the environment names a device that the backend does not have.
    """
    if not isinstance(name, str):
        raise BackendNotFoundError(f"a backend is named by a string ({', '.join(backend_names())}), not {brief(name)}")
    if name not in _LOADED:
        complete()  # may load this backend: `ops` loads the one that the environment names
    if name not in _LOADED:
        backend = _construct_backend(name)
        check_backend(backend)
        if os.environ.get(ENVIRONMENT) and not BLOCK_ENTERED.get():
            backend.bound.get_default_device()
        return _LOADED.setdefault(name, backend)  # another thread may have loaded it in the meantime: keep the first
    return _LOADED[name]


def loaded_backends() -> list[Backend]:
    """Returns the backends that are loaded so far."""
    return list(_LOADED.values())


def _construct_backend(name: str) -> Backend:
    if name in _OWN:
        try:
            module = importlib.import_module(f"emberharmony.backend.{name}")
        except (ImportError, OSError) as error:  # OSError: a shared library that it links to is missing or broken
            if passing_error(error):
                raise
            raise BackendUnavailableError(
                f"backend {name!r} cannot be loaded here ({error}): {_import_advice(name, error)}"
            ) from error
        backend: Any = module.BACKEND()
    else:
        plugin = _plugins().get(name)
        if plugin is None:
            names = backend_names()
            hint = suggest(name, names)
            if name.partition(":")[0].lower() in {"cpu", *ACCELERATORS}:
                hint = (
                    "; that is a device: use ops.device(name) or model.to(device=name), see ops.get_available_devices()"
                )
            elif name.lower() in _OTHERS:
                hint = f"; {_OTHERS[name.lower()]}"
            raise BackendNotFoundError(f"no backend is named {name!r}{hint} (known: {', '.join(names)})")
        try:
            factory: Callable[[], Any] = plugin.load()
        except ImportError as error:
            if passing_error(error):
                raise
            raise BackendUnavailableError(f"backend {name!r} of {plugin.value} cannot be imported: {error}") from error
        backend = factory()
    if not isinstance(backend, Backend):
        raise BackendProtocolError(f"backend {name!r}: the factory made a {type(backend).__name__}, not a Backend")
    return backend


def _import_advice(name: str, error: Exception) -> str:
    """Returns advice for a backend of the package that failed to import."""
    if (getattr(error, "name", None) or "").startswith("emberharmony."):
        return "the program was bundled without this module; tell the bundler to include all of emberharmony"
    return install_line(name)


def check_backend(backend: Backend) -> None:
    """Checks that a backend has every primitive, and that it declares no method of `Backend` unsupported.

    Raises:
        BackendProtocolError: if it does not; the message lists all of these ops.
    """
    overwritten_ops = backend.overwritten_defaults()
    if overwritten_ops:
        raise BackendProtocolError(
            f"backend {backend.name!r} declares {', '.join(overwritten_ops)} unsupported, but inherits "
            f"{'it' if len(overwritten_ops) == 1 else 'each'} from Backend: leave out the declaration; "
            f"{type(backend).__name__}.missing_ops() lists the ops to define or to declare"
        )
    missing_ops = backend.missing_ops()
    if missing_ops:
        raise BackendProtocolError(
            f"backend {backend.name!r} lacks {len(missing_ops)} primitive ops: {', '.join(missing_ops)}; "
            f'define them, or declare each with unsupported("reason"); an op of your own may have a body instead'
        )


def create_backend(name: BackendLike, fallback: BackendLike | None = "numpy") -> "TensorBackend":
    """Returns the checked backend of that name.

    Args:
        name: "numpy", "torch", "mlx", "jax", "dask" or a plugin's name.
        fallback: the backend to return, with a warning, if the library behind `name` is missing; None to raise.

    Raises:
        BackendNotFoundError: if the name is unknown. It is a ValueError.
        BackendUnavailableError: if the library is missing and `fallback` is None; the message has the install line. It
            is an ImportError.
    """
    try:
        return cast("TensorBackend", load(name))
    except BackendUnavailableError as error:
        if fallback is None or fallback == name:
            raise
        warnings.warn(f"{error}; using {fallback!r} instead", BackendFallbackWarning, stacklevel=2)
        return cast("TensorBackend", load(fallback))


def default_backend_name() -> str:
    """Returns the default backend: MLX on Apple silicon, torch with an accelerator, else NumPy."""
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        if is_installed("mlx"):
            return "mlx"
        return "torch" if is_installed("torch") else "numpy"
    if _may_have_cuda() and is_installed("torch"):
        # The first device is the CPU; a second one is a GPU that torch can use.
        return "torch" if len(load("torch").get_available_devices()) > 1 else "numpy"
    return "numpy"


def _may_have_cuda() -> bool:
    """Returns whether a GPU driver is present, without importing torch, which takes 2 s."""
    # NVIDIA's driver creates nvidia0, the Windows Subsystem for Linux creates dxg, and AMD's driver creates kfd.
    return any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/dxg", "/dev/kfd")) or (
        platform.system() == "Windows" and os.path.exists(os.path.expandvars(r"%SystemRoot%\System32\nvcuda.dll"))
    )
