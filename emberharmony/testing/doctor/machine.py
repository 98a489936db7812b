"""Facts about the machine: Python, libraries and their lowest versions, BLAS, memory, environment variables."""

import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from emberharmony.backend.choice import ENVIRONMENT as BACKEND
from emberharmony.backend.discovery import backend_names, install_line, is_installed
from emberharmony.backend.shared.device import ENVIRONMENT as DEVICE
from emberharmony.backend.shared.device import host_memory_info, memory_limit, processor_name
from emberharmony.core.dispatch import DISPATCH, REASON
from emberharmony.core.display.tracebacks import VARIABLE as TRACEBACK
from emberharmony.core.errors import suggest
from emberharmony.core.state import settings
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, ROWS, Finding
from emberharmony.version import __version__

_OWN = (
    *(BACKEND, DEVICE, "EMBERHARMONY_CHECK", "EMBERHARMONY_CONFIG", "EMBERHARMONY_DISPATCH", "EMBERHARMONY_MLX_BLAS"),
    *("EMBERHARMONY_BOARD", "EMBERHARMONY_TRANSPORT", "EMBERHARMONY_TEST_SEED", TRACEBACK),
)
"""The environment variables of EmberHarmony."""

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_ROUNDING = {
    "MLX_ENABLE_TF32": ("1",),
    "NVIDIA_TF32_OVERRIDE": ("1",),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ("1",),
    "JAX_DEFAULT_MATMUL_PRECISION": ("bfloat16", "tensorfloat32", "default", "high", "fastest"),
}
"""The environment variables that make libraries multiply float32 in fewer bits, with the values that do so."""

_OTHERS = (
    *(*_THREADS, *_ROUNDING, "OPENBLAS_CORETYPE", "KMP_DUPLICATE_LIB_OK", "JAX_ENABLE_X64", "JAX_PLATFORMS"),
    *("XLA_FLAGS", "CUDA_VISIBLE_DEVICES", "PYTORCH_ENABLE_MPS_FALLBACK", "MLX_DISABLE_COMPILE"),
)
_LIBRARY = re.compile(r"lib[^/]*(?:blas|lapack|mkl|blis|accelerate|atlas|[gi]?omp\d?)[^/]*\.(?:so|dylib)[^/]*$", re.I)
_FLOOR = re.compile(r">=\s*([\d.]+)")


def facts() -> dict[str, Any]:
    """Returns the facts about the machine by name, without the import of a library other than NumPy."""
    return {
        "emberharmony": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "free-threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
        "dispatch": f"{DISPATCH} ({REASON})",
        "system": platform.platform(),
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory GiB": round(host_memory_info()["total"] / 2**30, 1),
        "memory limit GiB": round(memory_limit() / 2**30, 1),
        "libraries": {name: version for name, version, _, _ in requirements() if version is not None},
        "NumPy's BLAS": blas_of_numpy(),
        "backend": chosen_backend(os.environ),
        "settings": settings_in_use(os.environ),
    }


def requirements() -> Iterator[tuple[str, str | None, str, str]]:
    """Yields each package that EmberHarmony can use: its name, its version or None, its floor, and the extra."""
    try:
        requirement_lines = metadata.requires("emberharmony") or []
    except metadata.PackageNotFoundError:  # a checkout on the path has no metadata
        requirement_lines = []
    seen_names: set[str] = set()
    for line in requirement_lines:
        name_match, floor_match = re.match(r"[\w.-]+", line), _FLOOR.search(line.partition(";")[0])
        extra_match = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        extra_name = extra_match[1] if extra_match else ""
        if (
            name_match is None
            or name_match[0] in seen_names
            or name_match[0].startswith("ember")
            or extra_name not in _EXTRAS
        ):
            continue
        seen_names.add(name_match[0])
        try:
            version = metadata.version(name_match[0])
        except metadata.PackageNotFoundError:
            version = None
        yield name_match[0], version, "0" if floor_match is None else floor_match[1], extra_name


_EXTRAS = ("", "torch", "mlx", "jax", "dask", "numba", "bfloat16", "cli", "conformance")
"""The extras that programs and the commands need, not those of developers."""


def blas_of_numpy() -> str:
    """Returns the name of the BLAS with which NumPy was built, from NumPy's build configuration."""
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build_config: Any = np.show_config(mode="dicts")
    blas = (build_config or {}).get("Build Dependencies", {}).get("blas", {})
    return " ".join(str(blas[word]) for word in ("name", "version") if blas.get(word)) or "unknown"


def loaded_libraries() -> list[str]:
    """Returns the names of the loaded libraries of linear algebra and threads, from `/proc/self/maps` on Linux."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as file:
            mapping_lines = file.readlines()
    except OSError:
        return []
    return sorted({match[0] for line in mapping_lines if (match := _LIBRARY.search(line.strip()))})


def settings_in_use(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of the libraries: environment variables by name, and the settings file if there is one."""
    listed_names = [name for name in (*_OWN, *_OTHERS) if name in environ]
    unlisted_names = [name for name in environ if name.startswith("EMBERHARMONY_") and name not in listed_names]
    value_by_name = {name: text_without_home(environ[name]) for name in (*listed_names, *unlisted_names)}
    return value_by_name | ({"settings file": text_without_home(settings.path())} if settings.exists() else {})


def chosen_backend(environ: Mapping[str, str]) -> str:
    """Returns the backend with which a program starts, and the source of this choice, without importing its library."""
    if backend_name := environ.get(BACKEND):
        return f"{backend_name}, from {BACKEND}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `findings` reports a settings file that cannot be read
        saved_name = settings.read("backend")
    if saved_name is not None:
        return f"{saved_name}, from {text_without_home(settings.path())}"
    return "the automatic choice"


def text_without_home(text: str) -> str:
    """Returns a text in which the user's folder is "~"."""
    home_folder = os.path.expanduser("~")
    return text.replace(home_folder, "~") if len(home_folder) > 1 else text


def findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yields findings about odd versions and settings of the machine, or one that says that there are none."""
    for subject, source in (("versions", _version_findings()), ("settings", _setting_findings(environ))):
        subject_findings = list(source)
        yield from subject_findings
        if not any(finding.verdict != OK for finding in subject_findings):
            yield Finding(subject, subject, OK, "as they should be")


def _is_older(version: str, floor: str) -> bool:
    """Returns whether a version is below another one, by their numbers."""
    version_numbers, floor_numbers = (
        [int(digits) for digits in re.findall(r"\d+", text)[:3]] for text in (version, floor)
    )
    return version_numbers < floor_numbers


def _version_findings() -> Iterator[Finding]:
    for name, version, floor, extra in requirements():
        install_command = (
            f'pip install --upgrade "emberharmony[{extra}]"' if extra else f'pip install --upgrade "{name}>={floor}"'
        )
        if version is None:
            yield Finding("versions", name, OK, f"{name} is not installed: {install_command.replace(' --upgrade', '')}")
        elif _is_older(version, floor):
            message = f"{name} {version} is older than {floor}, the lowest version that is tested: {install_command}"
            yield Finding("versions", name, DIFFERS, message, ROWS["versions"])


def _setting_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yields findings about odd environment variables of the libraries."""
    yield from _own_setting_findings(environ)
    core_count = os.cpu_count() or 1
    for name in _THREADS:
        value = environ.get(name)
        if value is not None and not (value.isdigit() and 1 <= int(value) <= 4 * core_count):
            finding_text = f"{name}={value}: expected a number of threads, at most the {core_count} cores"
            yield Finding("settings", name, DIFFERS, finding_text, ROWS["doctor"])
    for name, rounding_values in _ROUNDING.items():
        if environ.get(name, "").lower() in rounding_values:
            finding_text = f"{name}={environ[name]} lets the library round the factors of float32 products"
            yield Finding("settings", name, DIFFERS, finding_text, ROWS["precision"])
    if environ.get("KMP_DUPLICATE_LIB_OK"):
        finding_text = "KMP_DUPLICATE_LIB_OK hides that two OpenMP libraries are loaded, which can give wrong results"
        yield Finding("settings", "KMP_DUPLICATE_LIB_OK", DIFFERS, finding_text, ROWS["doctor"])


def _own_setting_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yields findings about unknown or wrong settings of EmberHarmony."""
    for name in sorted(environ):
        if name.startswith("EMBERHARMONY_") and name not in _OWN:
            yield Finding(
                "settings", name, DIFFERS, f"there is no setting {name}{suggest(name, _OWN)}", ROWS["settings"]
            )
    backend_name = environ.get(BACKEND)
    if backend_name:
        yield from _unknown_backend_findings(BACKEND, backend_name)
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        saved_name = settings.read("backend")
    for warning in caught_warnings:
        yield Finding("settings", "settings file", BROKEN, text_without_home(str(warning.message)))
    if saved_name is not None:
        yield from _unknown_backend_findings("the settings file", saved_name)


def _unknown_backend_findings(where: str, name: str) -> Iterator[Finding]:
    known_backends = backend_names()
    if name not in known_backends:
        yield Finding("settings", where, BROKEN, f"{where} names no backend: {name!r}{suggest(name, known_backends)}")
    elif not is_installed(name):
        yield Finding("settings", where, BROKEN, f"{where} names {name}, which is not installed: {install_line(name)}")
