"""Reads `[tool.emberlint]` from pyproject.toml; for an unknown key, the error names the nearest known key."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from emberlint.config.errors import UsageError, suggestion
from emberlint.config.presets import PRESETS
from emberlint.config.settings import Contract, Parity, Settings
from emberlint.config.tiers import Tier

# the kinds of results that the setting `functions` can give a function
KINDS = ("tensor", "tensors", "number", "bool", "dtype", "shape", "string", "none", "other")
ROLE_KINDS = ("frontend", "backend", "test", "script")
FORMATS = ("text", "json", "jsonl", "sarif", "github", "gitlab", "junit")
# Keys of earlier versions and of similar tools, with the keys that replace them.
REPLACED = {
    "src-roots": "it is now `src`, a list of folders",
    "source-roots": "it is `src`, a list of folders",
    "paths": "the paths are arguments of the command; `src` lists the folders of packages",
    "disable": "it is `ignore`",
    "enable": "it is `select`, or `extend-select`",
    "format": "it is `output-format`",
    "python-version": "it is `target-version`",
    "extend-exclude": "it is `exclude`, which replaces the defaults",
}
CONTRACT_KEYS = {"layers": "layers", "independence": "modules", "protected": "modules"}


def find_root(paths: Sequence[Path]) -> Path:
    """Returns the root folder of the project that contains some paths: the nearest one with a pyproject.toml or .git.

    It is the nearest folder above all paths that holds a pyproject.toml, else the nearest that holds .git, else the
    current folder.
    """
    common_folder = Path(os.path.commonpath([path.absolute() for path in paths])) if paths else Path.cwd()
    start_folder = common_folder if common_folder.is_dir() else common_folder.parent
    for marker_name in ("pyproject.toml", ".git"):
        for folder in (start_folder, *start_folder.parents):
            if (folder / marker_name).exists():
                return folder
    return Path.cwd() if start_folder.is_relative_to(Path.cwd()) else start_folder


def load_settings(root: Path, preset: str | None = None) -> Settings:
    """Returns the settings of the project at `root`; the defaults if its pyproject.toml has none.

    Args:
        root: The root of the project.
        preset: The name of a preset, instead of the one that the project names.

    Raises:
        UsageError: if the file is not TOML, or if a key or value of `[tool.emberlint]` is unknown.
    """
    pyproject_file = root / "pyproject.toml"
    if not pyproject_file.is_file():
        return settings_from_table({}, root, preset)
    try:
        pyproject_table = tomllib.loads(pyproject_file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{pyproject_file}: {error}") from error
    return settings_from_table(
        _require_table("[tool.emberlint]", pyproject_table.get("tool", {}).get("emberlint", {})), root, preset
    )


def settings_from_table(table: Mapping[str, object], root: Path, preset: str | None = None) -> Settings:
    """Returns the settings that a `[tool.emberlint]` table specifies, over those of its preset or of another one."""
    preset_name = (
        _require_preset("--preset", preset)
        if preset
        else _require_preset("[tool.emberlint] preset", table.get("preset", ""))
    )
    preset_settings, own_changes = (
        _settings_changes(PRESETS.get(preset_name, {})),
        _settings_changes({**table, "preset": preset_name}),
    )
    for key in ("ignore", "roles"):  # these lists add to those of the preset
        own_changes[key] = (*_tuple_of_changes(own_changes, key), *_tuple_of_changes(preset_settings, key))
    settings = Settings(root=root).with_changes(**{**preset_settings, **own_changes})
    return settings.with_changes(roles=(*settings.roles, *Settings().roles))


def _tuple_of_changes(changes: Mapping[str, object], key: str) -> tuple[object, ...]:
    entries = changes.get(key, ())
    return entries if isinstance(entries, tuple) else ()


def _settings_changes(table: Mapping[str, object]) -> dict[str, object]:
    value_by_name: dict[str, object] = {}
    for key, value in table.items():
        read_value = READERS.get(key)
        if read_value is None:
            hint = f"; {REPLACED[key]}" if key in REPLACED else suggestion(key, READERS)
            raise UsageError(f"[tool.emberlint] has no key {key!r}{hint}")
        value_by_name[key.replace("-", "_")] = read_value(f"[tool.emberlint] {key}", value)
    return value_by_name


def _require_text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected a string, got {value!r}")
    return value


def _require_flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where}: expected true or false, got {value!r}")
    return value


def _require_texts(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where}: expected a list of strings, got {value!r}")
    return tuple(value)


def _require_table(where: str, value: object, known: Iterable[str] | None = None) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected a table, got {value!r}")
    for key in value:
        if known is not None and key not in known:
            raise UsageError(f"{where} has no key {key!r}{suggestion(key, known)}")
    return value


def _require_tier(where: str, value: object) -> Tier:
    if value not in Tier.__members__:
        raise UsageError(f"{where}: expected 'A', 'B' or 'C', got {value!r}")
    return Tier[str(value)]


def require_version(where: str, value: object) -> tuple[int, int]:
    """Returns the version of Python that `py312` or `3.12` names."""
    version_match = re.fullmatch(r"(?:py)?(3)\.?(\d+)", value) if isinstance(value, str) else None
    if version_match is None:
        raise UsageError(f"{where}: expected a version such as 'py312' or '3.12', got {value!r}")
    return int(version_match[1]), int(version_match[2])


def _require_format(where: str, value: object) -> str:
    if value not in FORMATS:
        raise UsageError(f"{where}: unknown format {value!r}{suggestion(str(value), FORMATS)}; known: {FORMATS}")
    return str(value)


def _require_preset(where: str, value: object) -> str:
    preset_name = _require_text(where, value)
    if preset_name and preset_name not in PRESETS:
        raise UsageError(
            f"{where}: unknown preset {preset_name!r}{suggestion(preset_name, PRESETS)}; known: {', '.join(PRESETS)}"
        )
    return preset_name


def _read_folders(where: str, value: object) -> tuple[str, ...]:
    return tuple(text.strip("/").removeprefix("./") for text in _require_texts(where, value))


def _read_roles(where: str, value: object) -> tuple[tuple[str, str], ...]:
    """Returns (pattern, role) pairs from a table of role = [patterns]."""
    role_pairs: list[tuple[str, str]] = []
    for role, patterns in _require_table(where, value).items():
        role_kind = role.partition(":")[0]
        if role_kind not in ROLE_KINDS:
            raise UsageError(f"{where}: unknown role {role!r}{suggestion(role_kind, ROLE_KINDS)}")
        role_pairs.extend((pattern, role) for pattern in _require_texts(f"{where}.{role}", patterns))
    return tuple(role_pairs)


def _read_functions(where: str, value: object) -> Mapping[str, str]:
    kind_by_function = {
        name: _require_text(f"{where}.{name}", function_kind)
        for name, function_kind in _require_table(where, value).items()
    }
    for name, kind in kind_by_function.items():
        if kind not in KINDS:
            raise UsageError(
                f"{where}.{name}: unknown kind {kind!r}{suggestion(kind, KINDS)}; known: {', '.join(KINDS)}"
            )
    return kind_by_function


def _read_ignores(where: str, value: object) -> Mapping[str, tuple[str, ...]]:
    return {
        pattern: _require_texts(f"{where}.{pattern}", words) for pattern, words in _require_table(where, value).items()
    }


def _read_parity(where: str, value: object) -> Parity:
    parity_table = _require_table(where, value, Parity._fields)
    return Parity(**{key: _require_text(f"{where}.{key}", folder) for key, folder in parity_table.items()})


def _read_contracts(where: str, value: object) -> tuple[Contract, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: expected an array of tables, got {value!r}")
    return tuple(_read_contract(f"{where}[{index}]", row) for index, row in enumerate(value))


def _read_contract(where: str, value: object) -> Contract:
    contract_table = _require_table(where, value, Contract._fields)
    contract_type = _require_text(f"{where}.type", contract_table.get("type", ""))
    if contract_type not in CONTRACT_KEYS:
        raise UsageError(
            f"{where}: unknown type {contract_type!r}{suggestion(contract_type, CONTRACT_KEYS)}; "
            f"known: {[*CONTRACT_KEYS]}"
        )
    required_keys = CONTRACT_KEYS[contract_type]
    if required_keys not in contract_table:
        raise UsageError(f"{where}: a contract of type {contract_type!r} needs the key {required_keys!r}")
    texts_by_key = {
        key: _require_texts(f"{where}.{key}", contract_table[key])
        for key in ("layers", "modules", "allowed")
        if key in contract_table
    }
    return Contract(
        name=_require_text(f"{where}.name", contract_table.get("name", contract_type)),
        type=contract_type,
        **texts_by_key,
    )


READERS: Mapping[str, Callable[[str, object], object]] = {
    "preset": _require_preset,
    "src": _read_folders,
    "target-version": require_version,
    "select": _require_texts,
    "extend-select": _require_texts,
    "ignore": _require_texts,
    "min-tier": _require_tier,
    "backends": _require_texts,
    "host": _require_texts,
    "namespaces": _require_texts,
    "namespace-names": _require_texts,
    "tensor-types": _require_texts,
    "tensor-names": _require_texts,
    "module-classes": _require_texts,
    "allow-safe-operators": _require_flag,
    "functions": _read_functions,
    "roles": _read_roles,
    "frontends": _require_texts,
    "per-file-ignores": _read_ignores,
    "exclude": _require_texts,
    "contracts": _read_contracts,
    "parity": _read_parity,
    "baseline": _require_text,
    "output-format": _require_format,
}
