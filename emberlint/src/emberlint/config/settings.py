"""The keys of `[tool.emberlint]` in pyproject.toml and their defaults."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from emberlint.config.tiers import Tier

BACKENDS = ("numpy", "torch", "mlx", "jax", "tensorflow", "cupy")
NAMESPACES = ("emberharmony.ops", "ember_ml.ops", "keras.ops")
TENSOR_TYPES = (
    "emberharmony.Tensor",
    "emberharmony.TensorLike",
    "emberharmony.core.types.Tensor",
    "emberharmony.core.types.TensorLike",
    "keras.KerasTensor",
    "numpy.ndarray",
    "numpy.typing.NDArray",
    "numpy.typing.ArrayLike",
    "torch.Tensor",
    "torch.nn.Parameter",
    "mlx.core.array",
    "jax.Array",
    "jax.numpy.ndarray",
    "tensorflow.Tensor",
    "tensorflow.Variable",
    "cupy.ndarray",
)
MODULE_CLASSES = (
    "emberharmony.nn.Module",
    "keras.Layer",
    "keras.Model",
    "keras.layers.Layer",
    "torch.nn.Module",
    "mlx.nn.Module",
)
ROLES = (
    ("tests/**", "test"),  # listed before the backends, because tests/backend/torch/ holds tests
    ("test/**", "test"),
    ("**/tests/**", "test"),
    ("**/test/**", "test"),
    ("**/test_*.py", "test"),
    ("**/*_test.py", "test"),
    ("**/conftest.py", "test"),
    ("**/backend/{name}/**", "backend:{name}"),
    ("**/backends/{name}/**", "backend:{name}"),
    # EMB305 reports files here as misplaced; their content still belongs to a backend
    ("**/ops/{name}/**", "backend:{name}"),
    ("**/backend/{name}.py", "backend:{name}"),
    ("**/backends/{name}.py", "backend:{name}"),
    ("**/{name}_backend.py", "backend:{name}"),
    ("**/backend/**", "backend"),  # shared by backends, or for a library that is not in `backends`
    ("**/backends/**", "backend"),
    ("**/*_backend.py", "backend"),
    ("**/_backend.py", "backend"),
    ("**/_backends.py", "backend"),
    ("benchmarks/**", "script"),
    ("scripts/**", "script"),
    ("tools/**", "script"),
    ("utils/**", "script"),
    ("docs/**", "script"),
    ("setup.py", "script"),
    ("noxfile.py", "script"),
)
FRONTENDS = ("**/ops", "**/frontend")
SRC = ("src",)
EXCLUDE = ("**/.*", "**/__pycache__", "**/build", "**/dist", "**/node_modules", "**/site-packages", "**/venv")


class Role(NamedTuple):
    """The purpose of a file: `frontend`, `backend` (of one library, or shared), `test` or `script`."""

    kind: str = "frontend"
    backend: str | None = None


class Contract(NamedTuple):
    """A layering contract: `layers` (top first), `independence`, or `protected` modules and their allowed importers."""

    name: str
    type: str
    layers: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


class Parity(NamedTuple):
    """The folders in which the parity rules find the frontend's declarations and the backends' implementations."""

    frontend: str = ""
    backend: str = ""


class Settings(NamedTuple):
    """The settings of a run: the keys of `[tool.emberlint]` with their values.

    A list in pyproject.toml replaces the default list, except for `roles`, where it comes before the defaults.
    """

    root: Path = Path()
    preset: str = ""
    src: tuple[str, ...] = SRC  # folders, besides the root, in which Python finds the project's packages
    target_version: tuple[int, int] | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    min_tier: Tier | None = None
    backends: tuple[str, ...] = BACKENDS
    host: tuple[str, ...] = ()  # libraries that every backend folder may use, such as NumPy for host data
    namespaces: tuple[str, ...] = NAMESPACES
    namespace_names: tuple[str, ...] = ()  # names that stand for the first namespace, such as a parameter `xp`
    tensor_types: tuple[str, ...] = TENSOR_TYPES
    tensor_names: tuple[str, ...] = ()  # patterns of names that count as tensors by convention (tier C)
    module_classes: tuple[str, ...] = MODULE_CLASSES
    allow_safe_operators: bool = False  # on tensors of one floating dtype, which every library treats alike
    functions: Mapping[str, str] = {}  # dotted name of a function -> kind of its result
    roles: tuple[tuple[str, str], ...] = ROLES
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    frontends: tuple[str, ...] = FRONTENDS  # folders of declarations, which no backend may import
    exclude: tuple[str, ...] = EXCLUDE
    contracts: tuple[Contract, ...] = ()
    parity: Parity = Parity()
    baseline: str = ""
    output_format: str = "text"

    def role(self, path: str) -> Role:
        """Returns the role of a file, from the first pattern that matches its path."""
        return _role_of_path(path, self.roles, self.backends)

    def foreign_libraries(self, role: Role) -> frozenset[str]:
        """Returns the native libraries that a file of this role may not use."""
        if role.kind == "frontend":
            return frozenset(self.backends)
        if role.kind == "backend" and role.backend:
            return frozenset(self.backends) - {role.backend, *self.host}
        return frozenset()

    def module(self, path: str) -> str:
        """Returns the dotted module name of a path relative to the root."""
        module_stem = (
            path.removeprefix(self.source_prefix(path)).removesuffix(".py").removesuffix(".pyi").removesuffix(".ipynb")
        )
        path_parts = module_stem.split("/")
        if path_parts[-1] == "__init__":
            del path_parts[-1]
        return ".".join(path_parts)

    def source_prefix(self, path: str) -> str:
        """Returns the prefix of a path that is the folder in which Python finds the file's package, as `src/`."""
        matching_prefixes = [f"{source_folder}/" for source_folder in self.src if path.startswith(f"{source_folder}/")]
        return max(matching_prefixes, key=len, default="")

    @property
    def project_folders(self) -> tuple[str, ...]:
        """The folders that contracts and the parity rules examine."""
        contract_texts = [module for contract in self.contracts for module in (*contract.layers, *contract.modules)]
        packages = {word.strip().partition(".")[0] for module in contract_texts for word in re.split("[|:]", module)}
        parity_folders = {folder for folder in (self.parity.frontend, self.parity.backend) if folder}
        return tuple(sorted({self._package_folder(name) for name in packages} | parity_folders))

    def _package_folder(self, package: str) -> str:
        """Returns the folder of a package: in the first source folder that has it, else below the root."""
        candidate_folders = (
            f"{source_folder}/{package}" for source_folder in self.src if (self.root / source_folder / package).is_dir()
        )
        return next(candidate_folders, package)

    def with_changes(self, **changes: object) -> "Settings":
        """Returns a copy of the settings with some values changed."""
        return self._replace(**changes)  # type: ignore[arg-type]


_GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PARTS = re.compile(r"(\*\*/|\*\*|\*|\?)")


def _regex_of_glob(pattern: str) -> str:
    return "".join(_GLOB.get(token, re.escape(token)) for token in _PARTS.split(pattern.strip("/"))) + r"(?:/.*)?\Z"


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(_regex_of_glob(pattern))


@lru_cache(maxsize=16)
def _roles_expression(
    roles: tuple[tuple[str, str], ...], backends: tuple[str, ...]
) -> tuple[re.Pattern[str], list[Role]]:
    """Returns one expression with a group for each pattern of a role, the first that matches wins, and their roles."""
    role_patterns: list[str] = []
    group_roles: list[Role] = []
    for pattern, role in roles:
        for backend in backends if "{name}" in pattern else ("",):
            role_kind, _, name = role.replace("{name}", backend).partition(":")
            role_patterns.append(f"({_regex_of_glob(pattern.replace('{name}', backend))})")
            group_roles.append(Role(role_kind, name or None))
    return re.compile("|".join(role_patterns) or r"(?!)"), group_roles


@lru_cache(maxsize=1 << 16)
def _role_of_path(path: str, roles: tuple[tuple[str, str], ...], backends: tuple[str, ...]) -> Role:
    roles_pattern, group_roles = _roles_expression(roles, backends)
    pattern_match = roles_pattern.match(path)
    return Role() if pattern_match is None else group_roles[(pattern_match.lastindex or 1) - 1]


def matches(path: str, pattern: str) -> bool:
    """Returns whether a path matches a pattern.

    `*` does not cross a slash, `**` does; a pattern that matches a folder matches all files below it.
    """
    return _compile_pattern(pattern).match(path) is not None


def pattern_predicate(patterns: Iterable[str]) -> Callable[[str], object]:
    """Returns a predicate that tests whether a path matches any of the patterns; compiled once for many paths."""
    joined_pattern = "|".join(map(_regex_of_glob, patterns))
    return re.compile(joined_pattern).match if joined_pattern else lambda path: False
