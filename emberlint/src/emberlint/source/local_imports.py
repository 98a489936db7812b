"""Imports of modules from a file's own package, and the roles of those modules."""

from collections.abc import Iterator

from emberlint.config.settings import Role, matches
from emberlint.source.imports import Import
from emberlint.source.source_file import SourceFile


def local_imports(file: SourceFile) -> Iterator[tuple[Import, str]]:
    """Yields each import of the file's own package that runs, and the path of the module without suffix."""
    top_package = file.module.partition(".")[0]
    for import_ in file.imports:
        if import_.target.partition(".")[0] == top_package and "." in import_.target and not import_.typing_only:
            yield import_, import_.target.replace(".", "/")


def role_of(file: SourceFile, place: str) -> Role:
    """Returns the role of an imported module or package, or of the module that an imported name belongs to.

    `library/ops/numpy.py` is a module of the frontend, although files in a folder `library/ops/numpy/` are not.
    """
    source_prefix = file.settings.source_prefix(file.path)
    path_segments = place.split("/")
    for end in range(len(path_segments), 0, -1):
        module_path = f"{source_prefix}{'/'.join(path_segments[:end])}.py"
        if file.exists(module_path):
            return file.settings.role(module_path)
    module_role, package_role = (file.settings.role(f"{source_prefix}{place}{end}") for end in (".py", "/__init__.py"))
    return module_role if module_role.backend else package_role


def is_frontend(file: SourceFile, place: str) -> bool:
    """Returns whether an imported module is in a folder of declarations."""
    return any(matches(place, pattern) for pattern in file.settings.frontends)


def place_of(file: SourceFile, one: Import) -> tuple[int, int, int, int]:
    """Returns the line, column, end line and end column of an import."""
    return one.line, one.column, one.end_line, one.end_column
