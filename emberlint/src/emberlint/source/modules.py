"""Finds the files of the project's own modules, and the modules that a text imports, without importing any."""

import os
import re
from collections.abc import Collection, Iterator

from emberlint.config.settings import Settings, pattern_predicate

_IMPORT = re.compile(
    r"[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?:\((?P<block>[^)]*)\)|(?P<names>[^\n#;]*))"
    r"|import[ \t]+(?P<modules>[^\n#;]*))"
)


class Modules:
    """Finds modules in the project's source folders; what is found once stays known.

    Args:
        settings: The settings, with the root and the source folders.
        texts: The paths of files that are not on disk.
    """

    def __init__(self, settings: Settings, texts: Collection[str] = ()) -> None:
        self.settings = settings
        self._texts = frozenset(texts)
        self._root = str(settings.root)
        self._folders: dict[str, dict[str, bool]] = {}
        self.folders: list[str] = []  # those that were read, relative to the root
        self._prefixed: dict[tuple[str, str], tuple[str, ...]] = {}
        self._paths: dict[tuple[str, str], str | None] = {}
        self._excluded = pattern_predicate(settings.exclude)

    def exists(self, path: str) -> bool:
        """Returns whether the project has a file at a path relative to its root."""
        folder, _, name = path.rpartition("/")
        return self._folder_entries(folder).get(name, False) or path in self._texts

    def _folder_entries(self, folder: str) -> dict[str, bool]:
        """Returns the entries of a folder, and whether each is a file; a folder that its parent lacks is not read."""
        folder_entries = self._folders.get(folder)
        if folder_entries is None:
            parent_folder, _, name = folder.rpartition("/")
            is_folder = name in ("", ".", "..") or self._folder_entries(parent_folder).get(name) is False
            folder_entries = self._folders[folder] = _entries_of_folder(f"{self._root}/{folder}") if is_folder else {}
            if is_folder:
                self.folders.append(folder)
        return folder_entries

    def find_module(self, module: str, importer: str) -> str | None:
        """Returns the path of a module of the project as a file imports it, or None if the project has no such file."""
        top_package = module.partition(".")[0]
        if not top_package:
            return None
        folder_prefixes = self._folder_prefixes(importer, top_package)
        search_key = (module, folder_prefixes[0])
        if search_key not in self._paths:
            self._paths[search_key] = self._search_module(module, folder_prefixes)
        return self._paths[search_key]

    def _folder_prefixes(self, importer: str, top: str) -> tuple[str, ...]:
        """Returns the folders that may hold a package: the one above the importer's own package comes first."""
        cached_prefixes = self._prefixed.get((importer, top))
        if cached_prefixes is not None:
            return cached_prefixes
        importer_folders = importer.split("/")[:-1]
        own_prefix = (
            "/".join(importer_folders[: importer_folders.index(top)])
            if top in importer_folders
            else self.settings.source_prefix(importer).rstrip("/")
        )
        folder_prefixes = self._prefixed[importer, top] = tuple(dict.fromkeys((own_prefix, "", *self.settings.src)))
        return folder_prefixes

    def _search_module(self, module: str, prefixes: tuple[str, ...]) -> str | None:
        candidate_paths = _candidate_files(module, prefixes)
        existing_paths = (
            path for path in candidate_paths if self.exists(path) and (path in self._texts or not self._excluded(path))
        )
        return next(existing_paths, None)

    def candidate_paths(self, module: str, importer: str) -> Iterator[str]:
        """Yields the paths at which a module could be, as a file imports it."""
        return _candidate_files(module, self._folder_prefixes(importer, module.partition(".")[0]))

    def imported_files(self, path: str, text: str, at_once: bool = False) -> list[str]:
        """Returns the project's files that a text imports from, in the order of the text.

        Args:
            path: The file of the text.
            text: The source.
            at_once: Whether to leave out indented imports, such as those in functions, which run later.

        The text is read by lines, because there is no syntax tree yet. The package does not count
        in `from package import module`: nothing is taken from its file, which may import everything.
        """
        distinct_files: dict[str | None, None] = {}
        for base_module, names in _mentioned_modules(text, self._package_of_file(path), at_once):
            module_file = self.find_module(base_module, path)
            if module_file is not None and not module_file.endswith("/__init__.py"):
                distinct_files[module_file] = None  # a module, whose names are no modules
                continue
            module_files = [self.find_module(f"{base_module}.{name}" if base_module else name, path) for name in names]
            if not module_files or None in module_files:
                distinct_files[module_file] = None
            distinct_files.update(dict.fromkeys(module_files))
        distinct_files.pop(path, None)
        return [file for file in distinct_files if file is not None]

    def _package_of_file(self, path: str) -> str:
        module = self.settings.module(path)
        return module if path.endswith("__init__.py") else module.rpartition(".")[0]


def _entries_of_folder(folder: str) -> dict[str, bool]:
    """Returns the names of the entries of a folder, and whether each is a file."""
    try:
        with os.scandir(folder) as folder_entries:
            return {entry.name: entry.is_file() for entry in folder_entries}
    except OSError:  # it is gone, or may not be read
        return {}


def _candidate_files(module: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    module_path = module.replace(".", "/")
    for prefix in prefixes:
        base_path = f"{prefix}/{module_path}" if prefix else module_path
        yield f"{base_path}.py"
        yield f"{base_path}/__init__.py"


def _import_statements_of(text: str) -> Iterator[re.Match[str]]:
    """Yields the import statements of a text: the expression is tried on lines with the word only, to save time."""
    text_offset = text.find("import")
    while text_offset >= 0:
        import_match = _IMPORT.match(text, text.rfind("\n", 0, text_offset) + 1)
        if import_match is not None:
            yield import_match
            text_offset = max(text_offset, import_match.end() - 1)
        text_offset = text.find("import", text_offset + 1)


def _mentioned_modules(text: str, package: str, at_once: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields the modules in the import statements of a text, and the names that are imported from each."""
    for match in _import_statements_of(text):
        if at_once and match[0][0] in " \t":
            continue
        base_module, block, names, modules = match.group("base", "block", "names", "modules")
        if base_module is None:
            for module in modules.split(","):
                yield module.strip().partition(" ")[0], []
            continue
        dot_count = len(base_module) - len(base_module.lstrip("."))
        if dot_count:
            segments = package.split(".") if package else []
            package_parts = segments[: len(segments) - (dot_count - 1)]
            base_module = ".".join(
                [*package_parts, base_module[dot_count:]] if base_module[dot_count:] else package_parts
            )
        imported_names = (block if block is not None else names).split(",")
        imported_words = (name.split("#")[0].strip(" \t\n()\\").partition(" ")[0] for name in imported_names)
        yield base_module, [word for word in imported_words if word.isidentifier()]
