"""Moves implementations from `ops/<backend>/` to `backend/<backend>/`, and adapts every import of them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emberlint.config.errors import UsageError, suggestion
from emberlint.migrate import transaction
from emberlint.migrate.imports import Moves, computed_import_lines, rewrite_imports
from emberlint.migrate.merge import Clash, merge, unresolved_names
from emberlint.migrate.remains import shim_text, source_without_moved
from emberlint.migrate.selection import SourceModule, find_movable_names, select_statements
from emberlint.migrate.transaction import MigrationError
from emberlint.migrate.units import all_names, units_by_bound_name
from emberlint.parity.definitions import definitions
from emberlint.parity.layout import Layout
from emberlint.source.discover import discover
from emberlint.source.imports import imports
from emberlint.source.project import Project


@dataclass
class Plan:
    """The changes of a migration; the new text of a file is None if the file is removed."""

    root: Path
    before: dict[str, str | None] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # warnings that a person must look at
    kept: set[str] = field(default_factory=set)  # files that only re-export moved names
    windows: set[str] = field(default_factory=set)  # new files whose lines end as those of the moved file, in CR LF

    @property
    def changes(self) -> dict[str, str | None]:
        """The new texts of the files that change, by path."""
        return {path: text for path, text in self.after.items() if text != self.before[path]}

    def diff(self) -> str:
        """Returns the changes as a unified diff."""
        return transaction.unified_diff(self.before, self.after)

    def apply(self) -> None:
        """Writes the changes, all of them or none."""
        transaction.write_files(self.root, self.changes, self.windows)


def plan_moves(project: Project, layout: Layout, backend: str, operations: Sequence[str] = ()) -> Plan:
    """Returns the changes that move one backend's implementations: all, or some and what they need.

    Raises:
        MigrationError: for clashes, and for names that would be lost.
        UsageError: for an unknown operation.
    """
    move_plan = Plan(project.settings.root)
    sources = _misplaced_sources(project, layout, backend)
    source_by_module = {source.module: source for source in sources}
    movable_names, backend_definitions = (
        find_movable_names(source_by_module),
        definitions(project, layout, layout.backend_files(project, backend)),
    )
    for name in operations:
        if name not in movable_names and name not in backend_definitions:
            raise UsageError(f"no operation {name!r} to move{suggestion(name, [*movable_names, *backend_definitions])}")
    wanted_names = [name for name in operations if name in movable_names]
    if not sources or (operations and not wanted_names):
        return move_plan
    select_statements(source_by_module, wanted_names)
    moving_sources = [source for source in sources if _has_moves(source, bool(operations))]
    for each_source in sources:
        move_plan.before[each_source.path] = project.text(each_source.path)
    _check_not_defined_elsewhere(project, layout, backend, moving_sources)
    text_by_path: dict[str, str | None] = {}
    for each_source in moving_sources:
        text_by_path[each_source.target_path] = _receiving_text(project, each_source, move_plan)
    moves = _moves_of(project, layout, backend, sources, bool(operations))
    import_places = (
        _computed_imports_of_frontend(project, layout) if any(source.is_emptied for source in sources) else []
    )
    private_names = _private_attributes(project, sources)
    for each_source in moving_sources:
        text_by_path[each_source.path] = _remaining_text(each_source, sources, import_places, private_names, move_plan)
    _make_packages(project, layout, backend, text_by_path, move_plan)
    _rewrite_imports(project, text_by_path, moves, move_plan)
    for each_source in moving_sources:
        if {each_source.path, each_source.target_path} & set(move_plan.changes):
            move_plan.moved.append(
                f"{each_source.path} -> {each_source.target_path}: {', '.join(each_source.operations) or 'imports'}"
            )
    _verify_names(moving_sources, move_plan)
    _check_frontend_imports(project, layout, moving_sources, move_plan)
    move_plan.windows.update(source.target_path for source in moving_sources if _ends_in_crlf(project, source.path))
    return move_plan


def _has_moves(source: SourceModule, partial: bool) -> bool:
    return bool(source.moved or source.parts) if partial else True


def _misplaced_sources(project: Project, layout: Layout, backend: str) -> list[SourceModule]:
    """Returns the misplaced files of a backend, with their relative imports made absolute."""
    source_modules = []
    old_folder, new_folder = f"{layout.frontend}/{backend}", f"{layout.backend}/{backend}"
    for path in layout.files_inside_frontend(project, backend):
        target_path = new_folder + path[len(old_folder) :]
        module = module_name(project, path)
        is_package = path.endswith("__init__.py")
        absolute_text = rewrite_imports(project.text(path), module, is_package, Moves(), absolute=True)
        source_modules.append(SourceModule(path, module, target_path, module_name(project, target_path), absolute_text))
    return source_modules


def module_name(project: Project, path: str) -> str:
    """Returns the dotted name of a file, which starts at the outermost package around it."""
    path_segments = path.removesuffix(".py").removesuffix("/__init__").split("/")
    folders = path_segments[:-1]
    first_index = len(folders)
    while first_index and _is_package(project, "/".join(folders[:first_index])):
        first_index -= 1
    if first_index == len(folders):
        first_index = _outermost_start(project, folders)
    dotted_name = ".".join(path_segments[first_index:])
    project_root = project.settings.root
    while not first_index and (project_root / "__init__.py").is_file():
        dotted_name, project_root = f"{project_root.name}.{dotted_name}", project_root.parent
    return dotted_name


def _is_package(project: Project, folder: str) -> bool:
    init_path = f"{folder}/__init__.py"
    return init_path in project.texts or (project.settings.root / init_path).is_file()


def _outermost_start(project: Project, folders: Sequence[str]) -> int:
    """Returns where the dotted name of a file outside any package starts: at the outermost package above its folder."""
    for end_index in range(len(folders), 0, -1):
        if _is_package(project, "/".join(folders[:end_index])):
            first_index = end_index
            while first_index and _is_package(project, "/".join(folders[:first_index])):
                first_index -= 1
            return first_index
    return 1 if folders and folders[0] == "src" else 0


def _check_not_defined_elsewhere(
    project: Project, layout: Layout, backend: str, moving: Sequence[SourceModule]
) -> None:
    """Checks that no operation is already defined in another file of the backend, which would duplicate it."""
    backend_files = layout.backend_files(project, backend)
    target_paths = {source.target_path for source in moving}
    backend_package = f"{module_name(project, layout.frontend + '/x.py').rpartition('.')[0]}.{backend}"
    other_files = [path for path in backend_files if path not in target_paths and not path.endswith("__init__.py")]
    other_files = [path for path in other_files if backend_package not in project.text(path)]
    definitions_elsewhere = definitions(project, layout, other_files)
    clashes: list[Clash] = []
    for name, own_definition in definitions(project, layout, [source.path for source in moving]).items():
        moved_names = {
            name
            for source in moving
            for unit_parts in source.parts.values()
            for unit in unit_parts
            for name in unit.binds
        }
        is_leaving = any(name in source.names or source.is_emptied for source in moving) or name in moved_names
        if name in definitions_elsewhere and is_leaving:
            other_definition = definitions_elsewhere[name]
            both_places = (
                f"{own_definition.place.path}:{own_definition.place.line}",
                f"{other_definition.place.path}:{other_definition.place.line}",
            )
            clashes.append(Clash(name, both_places, (own_definition.source, other_definition.source)))
    _refuse_clashes(clashes)


def _refuse_clashes(clashes: Sequence[Clash]) -> None:
    if clashes:
        names_text = ", ".join(dict.fromkeys(clash.name for clash in clashes))
        reason_texts = [
            *map(str, clashes),
            f"`--operation NAME` moves other operations and leaves {names_text} where it is",
        ]
        raise MigrationError("\n\n".join(reason_texts))


def _receiving_text(project: Project, source: SourceModule, move_plan: Plan) -> str:
    """Returns the text of the receiving file; a new file receives the whole old one."""
    target_text = _text_or_none(project, source.target_path)
    move_plan.before[source.target_path] = target_text
    if target_text is None and source.is_emptied:
        return source.text
    merged_text, clashes = merge(source, target_text)
    _refuse_clashes(clashes)
    return merged_text


def _text_or_none(project: Project, path: str) -> str | None:
    if path in project.texts or (project.settings.root / path).is_file():
        return project.text(path)
    return None


def _moves_of(project: Project, layout: Layout, backend: str, sources: Sequence[SourceModule], partial: bool) -> Moves:
    target_by_module = {
        source.module: source.target for source in sources if source.is_emptied and _has_moves(source, partial)
    }
    if not partial:
        package_names = [
            module_name(project, f"{folder}/{backend}/x.py") for folder in (layout.frontend, layout.backend)
        ]
        old_package, new_package = (name.rpartition(".")[0] for name in package_names)
        target_by_module[old_package] = new_package
    unemptied_sources = [source for source in sources if source.names and not source.is_emptied]
    target_by_name_by_module = {
        source.module: dict.fromkeys(source.names, source.target) for source in unemptied_sources
    }
    for each_source in sources:
        for owner in each_source.parts:
            for name in owner.binds:
                # the rest of the class inherits everything from the moved part
                target_by_name_by_module.get(each_source.module, {}).pop(name, None)
    names_by_module = {
        source.module: tuple(all_names(source.units) or _public_names(source))
        for source in sources
        if source.module in target_by_module and _text_or_none(project, source.target_path) is not None
    }
    return Moves(target_by_module, target_by_name_by_module, names_by_module)


def _public_names(source: SourceModule) -> list[str]:
    return sorted(
        name for name in units_by_bound_name(source.units, "definition", "import") if not name.startswith("_")
    )


def _python_files(project: Project) -> list[str]:
    paths_on_disk = discover([project.settings.root], project.settings) if project.settings.root.is_dir() else {}
    return sorted({path for path in (*paths_on_disk, *project.texts) if path.endswith(".py")})


def _computed_imports_of_frontend(project: Project, layout: Layout) -> list[str]:
    """Returns the places that import a module of the frontend by a computed name."""
    frontend_package = module_name(project, f"{layout.frontend}/__init__.py")
    import_places = []
    for path in _python_files(project):
        tree = project.tree(path)
        if tree is not None:
            dotted_name = module_name(project, path)
            package = dotted_name if path.endswith("__init__.py") else dotted_name.rpartition(".")[0]
            import_places += [f"{path}:{line}" for line in computed_import_lines(tree, package, frontend_package)]
    return import_places


def _private_attributes(project: Project, sources: Sequence[SourceModule]) -> set[str]:
    """Returns the private names read as attributes of what may be a module of the folder, as in `math_ops._prepare`."""
    module_stems = {source.module.rpartition(".")[2] for source in sources}
    private_names: set[str] = set()
    for path in _python_files(project):
        if any(stem in project.text(path) for stem in module_stems):
            tree = project.tree(path) or ast.Module([], [])
            private_names.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {name for name in private_names if name.startswith("_")}


def _remaining_text(
    source: SourceModule,
    sources: Sequence[SourceModule],
    references: Sequence[str],
    reached_names: set[str],
    move_plan: Plan,
) -> str | None:
    remaining_text = source_without_moved(source, reached_names)
    if remaining_text is not None or not references:
        return remaining_text
    move_plan.kept.add(source.path)
    if source.is_shim:
        return move_plan.before[source.path]
    move_plan.notes.append(f"{source.path} stays as a list of imports: {references[0]} imports it by a computed name")
    modules_below = [
        other_source.module for other_source in sources if other_source.module.rpartition(".")[0] == source.module
    ]
    return shim_text(source, sorted(name.rpartition(".")[2] for name in modules_below) if source.is_package else [])


def _make_packages(
    project: Project, layout: Layout, backend: str, texts: dict[str, str | None], move_plan: Plan
) -> None:
    """Makes each new folder of a backend a package if its parent is one."""
    for path in list(texts):
        folder = path.rpartition("/")[0]
        while folder.startswith(f"{layout.backend}/") and texts[path] is not None:
            init_path = f"{folder}/__init__.py"
            if (
                init_path not in texts
                and _text_or_none(project, init_path) is None
                and _is_package(project, layout.frontend)
            ):
                move_plan.before[init_path], texts[init_path] = None, f'"""The {backend} backend."""\n'
            folder = folder.rpartition("/")[0]
    init_path = f"{layout.backend}/__init__.py"
    if _text_or_none(project, init_path) is None and _is_package(project, layout.frontend) and init_path not in texts:
        move_plan.before[init_path], texts[init_path] = None, '"""The backends."""\n'


def _rewrite_imports(project: Project, texts: Mapping[str, str | None], moves: Moves, result: Plan) -> None:
    """Rewrites the imports of every file of the project, including the moved files."""
    moved_modules = [*moves.modules, *moves.names]
    last_names = {word.rpartition(".")[2] for word in moved_modules} | {
        word.rpartition(".")[2] for word in moves.modules.values()
    }
    for path in sorted({*_python_files(project), *texts}):
        file_text = texts[path] if path in texts else project.text(path)
        if file_text is None:
            result.after[path] = None
            continue
        if path not in texts and (
            not any(last_name in file_text for last_name in last_names) or project.tree(path) is None
        ):
            continue
        if path in result.kept:
            result.after[path] = file_text
            continue
        new_text = rewrite_imports(file_text, module_name(project, path), path.endswith("__init__.py"), moves)
        if path not in texts and new_text == file_text:
            continue
        result.before.setdefault(path, file_text)
        result.after[path] = new_text


def _verify_names(moving: Sequence[SourceModule], move_plan: Plan) -> None:
    """Checks that changed files are valid Python, and that a moved module reads no name that it no longer binds."""
    for path, target_text in move_plan.changes.items():
        if target_text is not None:
            ast.parse(target_text, path)
    for source in moving:
        target_text = move_plan.after.get(source.target_path)
        old_target_text = move_plan.before.get(source.target_path)
        unresolved_before = unresolved_names(source.text) | (
            unresolved_names(old_target_text) if old_target_text else set()
        )
        newly_unresolved_names = unresolved_names(target_text) - unresolved_before if target_text else set()
        if newly_unresolved_names:
            raise MigrationError(
                f"{source.target_path} would lack {', '.join(sorted(newly_unresolved_names))}, which {source.path} has"
            )


def _check_frontend_imports(project: Project, layout: Layout, moving: Sequence[SourceModule], result: Plan) -> None:
    """Stops for an import of the frontend in a moved file if that makes a circle of imports; else notes it."""
    frontend_package, backend_package = (
        module_name(project, f"{folder}/__init__.py") for folder in (layout.frontend, layout.backend)
    )
    for source in moving:
        target_text = result.after.get(source.target_path)
        for imported in (
            imports(ast.parse(target_text), source.target, source.target_path.endswith("__init__.py"))
            if target_text
            else ()
        ):
            module_below = imported.target.removeprefix(f"{frontend_package}.")
            if (
                module_below == imported.target
                or module_below.partition(".")[0] in layout.names
                or imported.typing_only
            ):
                continue
            warning_text = (
                f"{source.path} imports {imported.target} of the frontend; move what both need to {layout.backend}/"
            )
            if any(
                _imports_below(project, result, path, backend_package)
                for path in _files_run_by_import(project, layout, module_below)
            ):
                raise MigrationError(f"{warning_text} first, because the frontend imports the backends")
            result.warnings.append(warning_text)


def _files_run_by_import(project: Project, layout: Layout, module: str) -> Iterator[str]:
    """Yields the files that run when a module of the frontend, or a name in one, is imported."""
    yield f"{layout.frontend}/__init__.py"
    segments = module.split(".")
    for end_index in range(1, len(segments) + 1):
        module_path = f"{layout.frontend}/{'/'.join(segments[:end_index])}"
        yield from (
            path
            for path in (f"{module_path}.py", f"{module_path}/__init__.py")
            if _text_or_none(project, path) is not None
        )


def _imports_below(project: Project, result: Plan, path: str, package: str) -> bool:
    """Returns whether a file imports modules of a package when it is loaded."""
    file_text = result.after.get(path) or _text_or_none(project, path)
    if file_text is None:
        return False
    tree = ast.parse(file_text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    imported_modules = imports(tree, module_name(project, path), path.endswith("__init__.py"))
    return any(f"{module.target}.".startswith(f"{package}.") and not module.typing_only for module in imported_modules)


def _ends_in_crlf(project: Project, path: str) -> bool:
    file = project.settings.root / path
    return path not in project.texts and file.is_file() and transaction.ends_in_crlf(file.read_bytes())
