"""Finds the folders of a project's frontend and backends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from emberlint.source.project import Project

FRONTENDS = ("ops", "frontend")
BACKENDS = ("backend", "backends")
SUFFIXES = ("_ops", "_operations", "_backend")


@dataclass(frozen=True)
class Layout:
    """The folders of one package, relative to the project's root: `ops/`, `backend/`, and the backends' names.

    Implementations in a folder inside the frontend (`ops/torch/`) are misplaced. The frontend may also be one file,
    `ops.py`.
    """

    frontend: str
    backend: str
    names: tuple[str, ...]

    def frontend_files(self, project: Project) -> list[str]:
        """Returns the files with declarations: those of the frontend outside its folders of implementations."""
        if self.frontend.endswith(".py"):
            return [self.frontend]
        prefix_length = len(self.frontend) + 1
        return [path for path in project.files(self.frontend) if path[prefix_length:].split("/")[0] not in self.names]

    def backend_files(self, project: Project, name: str) -> list[str]:
        """Returns the files of one backend, in its folder or `backend/<name>.py`."""
        single_file_paths = [f"{self.backend}/{stem}.py" for stem in (name, f"{name}_backend")]
        shared_files = set(project.files(self.backend)) if self.backend else set()
        backend_folder = f"{self.backend}/{name}/"
        return sorted(path for path in shared_files if path.startswith(backend_folder) or path in single_file_paths)

    def files_inside_frontend(self, project: Project, name: str) -> list[str]:
        """Returns the files of one backend that are inside the frontend."""
        return [] if self.frontend.endswith(".py") else list(project.files(f"{self.frontend}/{name}"))


def category_of_path(path: str) -> str:
    """Returns the category in a file's name: `math` for `ops/math.py` and `backend/torch/math_ops.py`."""
    pure_path = PurePosixPath(path)
    file_stem = pure_path.parent.name if pure_path.name == "__init__.py" else pure_path.stem
    for suffix in SUFFIXES:
        file_stem = file_stem.removesuffix(suffix)
    return file_stem


def find_layout(project: Project) -> Layout | None:
    """Returns the layout in the settings, or the first one found in the root or one folder below it, or None."""
    parity_settings = project.settings.parity
    if parity_settings.frontend and parity_settings.backend:
        return _layout_of_folders(project, parity_settings.frontend.rstrip("/"), parity_settings.backend.rstrip("/"))
    for base_folder in _base_folders(project):
        folder_prefix = f"{base_folder}/" if base_folder else ""
        for frontend in FRONTENDS:
            for backend in BACKENDS:
                layout = _layout_of_folders(project, folder_prefix + frontend, folder_prefix + backend)
                if layout is not None:
                    return layout
    return None


def _base_folders(project: Project) -> Iterator[str]:
    yield ""
    folders_of_files = {"/".join(path.split("/")[:depth]) for path in project.texts for depth in (1, 2)}
    folders_on_disk: set[str] = set()
    for parent in (project.settings.root, project.settings.root / "src"):
        if parent.is_dir():
            child_folders = (child for child in parent.iterdir() if child.is_dir() and not child.name.startswith("."))
            folders_on_disk.update(child.relative_to(project.settings.root).as_posix() for child in child_folders)
    yield from sorted(
        base_folder for base_folder in folders_of_files | folders_on_disk if not base_folder.endswith(".py")
    )


def _layout_of_folders(project: Project, frontend: str, backend: str) -> Layout | None:
    if f"{frontend}.py" in project.texts or (project.settings.root / f"{frontend}.py").is_file():
        frontend = f"{frontend}.py"
    frontend_folder = frontend.removesuffix(".py")
    backend_names = _backend_names(project, frontend_folder, backend)
    has_frontend = frontend.endswith(".py") or any(project.files(frontend_folder))
    return Layout(frontend, backend, backend_names) if backend_names and has_frontend else None


def _backend_names(project: Project, frontend: str, backend: str) -> tuple[str, ...]:
    """Returns the folders named after a library, in the order of the settings, then others with `*_ops.py`."""
    settings_names = project.settings.backends
    backend_names: set[str] = set()
    for folder in (backend, frontend):
        for path in project.files(folder):
            path_segments = path[len(folder) + 1 :].split("/")
            backend_name = path_segments[0].removesuffix(".py").removesuffix("_backend")
            is_backend = folder == backend and len(path_segments) == 2 and path_segments[1].endswith("_ops.py")
            if (backend_name in settings_names and (len(path_segments) > 1 or folder == backend)) or is_backend:
                backend_names.add(backend_name)
    return (
        *(backend_name for backend_name in settings_names if backend_name in backend_names),
        *sorted(backend_names.difference(settings_names)),
    )


def chosen_names(names: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Returns the requested backends, or all if none are requested."""
    return tuple(name for name in names if not wanted or name in wanted)
