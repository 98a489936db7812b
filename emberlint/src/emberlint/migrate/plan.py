"""Moves implementations from `ops/<backend>/` to `backend/<backend>/`, and adapts every import of them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emberlint.config.errors import UsageError, suggestion
from emberlint.migrate import transaction
from emberlint.migrate.imports import Moves, computed_imports, rewrite
from emberlint.migrate.merge import Clash, merge, unresolved_names
from emberlint.migrate.remains import shim, source_without_moved
from emberlint.migrate.selection import SourceModule, movable, select
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
    warnings: list[str] = field(default_factory=list)  # what a person must look at
    kept: set[str] = field(default_factory=set)  # files that only re-export moved names
    windows: set[str] = field(default_factory=set)  # new files whose lines end as those of the moved file, in CR LF

    @property
    def changes(self) -> dict[str, str | None]:
        """The files whose text changes."""
        return {path: text for path, text in self.after.items() if text != self.before[path]}

    def diff(self) -> str:
        """Returns the changes as a unified diff."""
        return transaction.diff(self.before, self.after)

    def apply(self) -> None:
        """Writes the changes, all of them or none."""
        transaction.write(self.root, self.changes, self.windows)


def plan(project: Project, layout: Layout, backend: str, operations: Sequence[str] = ()) -> Plan:
    """Returns the changes that move one backend's implementations: all, or some and what they need.

    Raises:
        MigrationError: for clashes, and for names that would be lost.
        UsageError: for an unknown operation.
    """
    result = Plan(project.settings.root)
    sources = _misplaced_sources(project, layout, backend)
    source_by_module = {source.module: source for source in sources}
    movable_units, backend_definitions = (
        movable(source_by_module),
        definitions(project, layout, layout.backend_files(project, backend)),
    )
    for name in operations:
        if name not in movable_units and name not in backend_definitions:
            raise UsageError(f"no operation {name!r} to move{suggestion(name, [*movable_units, *backend_definitions])}")
    wanted_names = [name for name in operations if name in movable_units]
    if not sources or (operations and not wanted_names):
        return result
    select(source_by_module, wanted_names)
    moving = [source for source in sources if _has_moves(source, bool(operations))]
    for each_source in sources:
        result.before[each_source.path] = project.text(each_source.path)
    _check_not_defined_elsewhere(project, layout, backend, moving)
    text_by_path: dict[str, str | None] = {}
    for each_source in moving:
        text_by_path[each_source.target_path] = _receiving_text(project, each_source, result)
    moves = _moves_of(project, layout, backend, sources, bool(operations))
    references = _computed_imports_of_frontend(project, layout) if any(source.is_emptied for source in sources) else []
    private_names = _private_attributes(project, sources)
    for each_source in moving:
        text_by_path[each_source.path] = _remaining_text(each_source, sources, references, private_names, result)
    _make_packages(project, layout, backend, text_by_path, result)
    _rewrite_imports(project, text_by_path, moves, result)
    for each_source in moving:
        if {each_source.path, each_source.target_path} & set(result.changes):
            result.moved.append(
                f"{each_source.path} -> {each_source.target_path}: {', '.join(each_source.operations) or 'imports'}"
            )
    _verify_names(moving, result)
    _check_frontend_imports(project, layout, moving, result)
    result.windows.update(source.target_path for source in moving if _ends_in_crlf(project, source.path))
    return result


def _has_moves(one: SourceModule, partial: bool) -> bool:
    return bool(one.moved or one.parts) if partial else True


def _misplaced_sources(project: Project, layout: Layout, backend: str) -> list[SourceModule]:
    """Returns the misplaced files of a backend, with their relative imports made absolute."""
    sources = []
    old_folder, new_folder = f"{layout.frontend}/{backend}", f"{layout.backend}/{backend}"
    for path in layout.files_inside_frontend(project, backend):
        target = new_folder + path[len(old_folder) :]
        module = module_name(project, path)
        is_package = path.endswith("__init__.py")
        text = rewrite(project.text(path), module, is_package, Moves(), absolute=True)
        sources.append(SourceModule(path, module, target, module_name(project, target), text))
    return sources


def module_name(project: Project, path: str) -> str:
    """Returns the dotted name of a file, which starts at the outermost package around it."""
    segments = path.removesuffix(".py").removesuffix("/__init__").split("/")
    folders = segments[:-1]
    start = len(folders)
    while start and _is_package(project, "/".join(folders[:start])):
        start -= 1
    if start == len(folders):
        start = _outermost_start(project, folders)
    name = ".".join(segments[start:])
    root = project.settings.root
    while not start and (root / "__init__.py").is_file():
        name, root = f"{root.name}.{name}", root.parent
    return name


def _is_package(project: Project, folder: str) -> bool:
    path = f"{folder}/__init__.py"
    return path in project.texts or (project.settings.root / path).is_file()


def _outermost_start(project: Project, folders: Sequence[str]) -> int:
    """Returns where the dotted name of a file outside any package starts: at the outermost package above its folder."""
    for end in range(len(folders), 0, -1):
        if _is_package(project, "/".join(folders[:end])):
            start = end
            while start and _is_package(project, "/".join(folders[:start])):
                start -= 1
            return start
    return 1 if folders and folders[0] == "src" else 0


def _check_not_defined_elsewhere(
    project: Project, layout: Layout, backend: str, moving: Sequence[SourceModule]
) -> None:
    """Checks that no operation is already defined in another file of the backend, which would duplicate it."""
    files = layout.backend_files(project, backend)
    targets = {source.target_path for source in moving}
    package = f"{module_name(project, layout.frontend + '/x.py').rpartition('.')[0]}.{backend}"
    other_files = [path for path in files if path not in targets and not path.endswith("__init__.py")]
    other_files = [path for path in other_files if package not in project.text(path)]
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
        reasons = [*map(str, clashes), f"`--operation NAME` moves other operations and leaves {names_text} where it is"]
        raise MigrationError("\n\n".join(reasons))


def _receiving_text(project: Project, one: SourceModule, result: Plan) -> str:
    """Returns the text of the receiving file; a new file receives the whole old one."""
    target_text = _text_or_none(project, one.target_path)
    result.before[one.target_path] = target_text
    if target_text is None and one.is_emptied:
        return one.text
    text, clashes = merge(one, target_text)
    _refuse_clashes(clashes)
    return text


def _text_or_none(project: Project, path: str) -> str | None:
    if path in project.texts or (project.settings.root / path).is_file():
        return project.text(path)
    return None


def _moves_of(project: Project, layout: Layout, backend: str, sources: Sequence[SourceModule], partial: bool) -> Moves:
    target_by_module = {
        source.module: source.target for source in sources if source.is_emptied and _has_moves(source, partial)
    }
    if not partial:
        names = [module_name(project, f"{folder}/{backend}/x.py") for folder in (layout.frontend, layout.backend)]
        old, new = (name.rpartition(".")[0] for name in names)
        target_by_module[old] = new
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


def _public_names(one: SourceModule) -> list[str]:
    return sorted(name for name in units_by_bound_name(one.units, "definition", "import") if not name.startswith("_"))


def _python_files(project: Project) -> list[str]:
    on_disk = discover([project.settings.root], project.settings) if project.settings.root.is_dir() else {}
    return sorted({path for path in (*on_disk, *project.texts) if path.endswith(".py")})


def _computed_imports_of_frontend(project: Project, layout: Layout) -> list[str]:
    """Returns the places that import a module of the frontend by a computed name."""
    frontend = module_name(project, f"{layout.frontend}/__init__.py")
    uses = []
    for path in _python_files(project):
        tree = project.tree(path)
        if tree is not None:
            name = module_name(project, path)
            package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
            uses += [f"{path}:{line}" for line in computed_imports(tree, package, frontend)]
    return uses


def _private_attributes(project: Project, sources: Sequence[SourceModule]) -> set[str]:
    """Returns the private names read as attributes of what may be a module of the folder, as in `math_ops._prepare`."""
    stems = {source.module.rpartition(".")[2] for source in sources}
    names: set[str] = set()
    for path in _python_files(project):
        if any(stem in project.text(path) for stem in stems):
            tree = project.tree(path) or ast.Module([], [])
            names.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {name for name in names if name.startswith("_")}


def _remaining_text(
    one: SourceModule, sources: Sequence[SourceModule], references: Sequence[str], reached_names: set[str], result: Plan
) -> str | None:
    text = source_without_moved(one, reached_names)
    if text is not None or not references:
        return text
    result.kept.add(one.path)
    if one.is_shim:
        return result.before[one.path]
    result.notes.append(f"{one.path} stays as a list of imports: {references[0]} imports it by a computed name")
    modules_below = [
        other_source.module for other_source in sources if other_source.module.rpartition(".")[0] == one.module
    ]
    return shim(one, sorted(name.rpartition(".")[2] for name in modules_below) if one.is_package else [])


def _make_packages(project: Project, layout: Layout, backend: str, texts: dict[str, str | None], result: Plan) -> None:
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
                result.before[init_path], texts[init_path] = None, f'"""The {backend} backend."""\n'
            folder = folder.rpartition("/")[0]
    init_path = f"{layout.backend}/__init__.py"
    if _text_or_none(project, init_path) is None and _is_package(project, layout.frontend) and init_path not in texts:
        result.before[init_path], texts[init_path] = None, '"""The backends."""\n'


def _rewrite_imports(project: Project, texts: Mapping[str, str | None], moves: Moves, result: Plan) -> None:
    """Rewrites the imports of every file of the project, including the moved files."""
    words = [*moves.modules, *moves.names]
    last_names = {word.rpartition(".")[2] for word in words} | {
        word.rpartition(".")[2] for word in moves.modules.values()
    }
    for path in sorted({*_python_files(project), *texts}):
        text = texts[path] if path in texts else project.text(path)
        if text is None:
            result.after[path] = None
            continue
        if path not in texts and (not any(end in text for end in last_names) or project.tree(path) is None):
            continue
        if path in result.kept:
            result.after[path] = text
            continue
        new_text = rewrite(text, module_name(project, path), path.endswith("__init__.py"), moves)
        if path not in texts and new_text == text:
            continue
        result.before.setdefault(path, text)
        result.after[path] = new_text


def _verify_names(moving: Sequence[SourceModule], result: Plan) -> None:
    """Checks that changed files are valid Python, and that a moved module reads no name that it no longer binds."""
    for path, text in result.changes.items():
        if text is not None:
            ast.parse(text, path)
    for source in moving:
        text = result.after.get(source.target_path)
        old_target_text = result.before.get(source.target_path)
        unresolved_before = unresolved_names(source.text) | (
            unresolved_names(old_target_text) if old_target_text else set()
        )
        unresolved_now = unresolved_names(text) - unresolved_before if text else set()
        if unresolved_now:
            raise MigrationError(
                f"{source.target_path} would lack {', '.join(sorted(unresolved_now))}, which {source.path} has"
            )


def _check_frontend_imports(project: Project, layout: Layout, moving: Sequence[SourceModule], result: Plan) -> None:
    """Stops for an import of the frontend in a moved file if that makes a circle of imports; else notes it."""
    frontend, backends = (module_name(project, f"{folder}/__init__.py") for folder in (layout.frontend, layout.backend))
    for source in moving:
        text = result.after.get(source.target_path)
        for imported in (
            imports(ast.parse(text), source.target, source.target_path.endswith("__init__.py")) if text else ()
        ):
            module_below = imported.target.removeprefix(f"{frontend}.")
            if (
                module_below == imported.target
                or module_below.partition(".")[0] in layout.names
                or imported.typing_only
            ):
                continue
            word = f"{source.path} imports {imported.target} of the frontend; move what both need to {layout.backend}/"
            if any(
                _imports_below(project, result, path, backends)
                for path in _files_run_by_import(project, layout, module_below)
            ):
                raise MigrationError(f"{word} first, because the frontend imports the backends")
            result.warnings.append(word)


def _files_run_by_import(project: Project, layout: Layout, module: str) -> Iterator[str]:
    """Yields the files that run when a module of the frontend, or a name in one, is imported."""
    yield f"{layout.frontend}/__init__.py"
    segments = module.split(".")
    for end in range(1, len(segments) + 1):
        module_path = f"{layout.frontend}/{'/'.join(segments[:end])}"
        yield from (
            path
            for path in (f"{module_path}.py", f"{module_path}/__init__.py")
            if _text_or_none(project, path) is not None
        )


def _imports_below(project: Project, result: Plan, path: str, package: str) -> bool:
    """Returns whether a file imports modules of a package when it is loaded."""
    text = result.after.get(path) or _text_or_none(project, path)
    if text is None:
        return False
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    imported_modules = imports(tree, module_name(project, path), path.endswith("__init__.py"))
    return any(f"{module.target}.".startswith(f"{package}.") and not module.typing_only for module in imported_modules)


def _ends_in_crlf(project: Project, path: str) -> bool:
    file = project.settings.root / path
    return path not in project.texts and file.is_file() and transaction.ends_in_crlf(file.read_bytes())
