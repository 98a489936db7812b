"""The library of the summaries of a project's files, and the shelf that records which ones a check has used.

A file sees the summaries only of files to which its imports lead, although others may be known: which ones are known
depends on the order, and with several processes on chance.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emberlint.source.modules import Modules

NO_FILE, NO_SUMMARY, UNSEEN = "-", "", "o"
IMPORTS = "imports.json"  # the name of the shared file with the imports of all files


class Library:
    """The library of known summaries by path, and the imports of each file.

    Args:
        modules: Finds the files of modules.
        spool: A folder through which processes exchange summaries; None if there is one process only.
    """

    def __init__(self, modules: Modules, spool: Path | None = None) -> None:
        self.modules = modules
        self.spool = spool
        self._encoded: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self._near_by_path: dict[str, Sequence[str]] = {}

    def record_imports(self, near_paths: Mapping[str, Sequence[str]]) -> None:
        """Records the files that each file imports."""
        self._near_by_path.update(near_paths)

    def imports_of(self, path: str) -> Sequence[str]:
        """Returns the files that a file imports."""
        if not self._near_by_path and self.spool is not None:
            self._near_by_path = json.loads((self.spool / IMPORTS).read_text(encoding="utf-8"))
        return self._near_by_path.get(path, ())

    def share_summaries(self, spool: Path | None) -> None:
        """Writes the summaries, and each later one, to a folder for other processes to read; None ends the sharing."""
        self.spool = spool
        if spool is not None:
            (spool / IMPORTS).write_text(json.dumps(self._near_by_path), encoding="utf-8")
        for path, summary in [*self._encoded.items()] if spool is not None else ():
            self.put(path, summary)

    def is_known(self, path: str) -> bool:
        """Returns whether the summary of a file is known, be it None."""
        return path in self._digests

    def put(self, path: str, summary: Any) -> None:
        """Stores the summary of a file, or None for a file without one."""
        encoded_summary = _summary_text(summary)
        self._encoded[path] = summary
        self._digests[path] = _digest(encoded_summary)
        if self.spool is not None and encoded_summary:
            self._summary_file(path).write_text(encoded_summary, encoding="utf-8")

    def get(self, path: str) -> Any:
        """Returns the summary of a file, or None if it has none or is not checked yet."""
        if path not in self._encoded and self.spool is not None:
            summary_file = self._summary_file(path)
            self._encoded[path] = (
                json.loads(summary_file.read_text(encoding="utf-8")) if summary_file.is_file() else None
            )
        return self._encoded.get(path)

    def digest(self, path: str) -> str:
        """Returns the digest of the summary of a file."""
        if path in self._digests:
            return self._digests[path]
        summary_digest = _digest(_summary_text(self.get(path)))
        if path in self._encoded:
            self._digests[path] = summary_digest
        return summary_digest

    def forget(self, path: str) -> None:
        """Drops the summary of a file."""
        self._encoded.pop(path, None)
        self._digests.pop(path, None)

    def _summary_file(self, path: str) -> Path:
        assert self.spool is not None
        return self.spool / f"{blake2b(path.encode(errors='surrogatepass'), digest_size=12).hexdigest()}.json"


def _summary_text(summary: Any) -> str:
    return "" if summary is None else json.dumps(summary, separators=(",", ":"))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest() if text else NO_SUMMARY


class Shelf:
    """The library as one file uses it: it shows the files that the file imports, directly or through others, and
    records what was asked. Of other files it depends on chance whether they are checked before.

    Args:
        library: The summaries.
        path: The file that asks.
        near: The files that it imports.
        hidden: Files whose summaries it must not see, because they come later in a circle of imports.
    """

    def __init__(self, library: Library, path: str, near: tuple[str, ...], hidden: frozenset[str]) -> None:
        self.library = library
        self.used: dict[str, str] = {}  # digests of summaries by module, and whether a file exists by "?" and its path
        self._path = path
        self.near = near
        self._hidden = hidden
        self._is_seen_by_file = {near_file: near_file not in hidden for near_file in near}

    def is_seen(self, place: str) -> bool:
        """Returns whether the file may see another file: imports lead there, and it is not hidden."""
        if place not in self._is_seen_by_file:
            self._is_seen_by_file[place] = place not in self._hidden and place in self._reachable_files()
        return self._is_seen_by_file[place]

    def _reachable_files(self) -> Iterator[str]:
        """Yields the files to which imports lead, near ones first, without those behind hidden ones."""
        pending_paths = [*self.near]
        visited_paths = {self._path, *self._hidden, *pending_paths}
        for path in pending_paths:
            yield path
            if path not in self._hidden:
                new_imports = [
                    import_path for import_path in self.library.imports_of(path) if import_path not in visited_paths
                ]
                visited_paths.update(new_imports)
                pending_paths += new_imports

    def summary(self, module: str) -> Any:
        """Returns the summary of a module, or None."""
        module_path = self.library.modules.find_module(module, self._path)
        self.used[module] = NO_FILE if module_path is None else self._digest(module_path)
        return None if module_path is None or not self.is_seen(module_path) else self.library.get(module_path)

    def is_module(self, module: str) -> bool:
        """Returns whether the project has a module of that name."""
        module_path = self.library.modules.find_module(module, self._path)
        self.used[module] = NO_FILE if module_path is None else self._digest(module_path)
        return module_path is not None

    def _digest(self, place: str) -> str:
        return self.library.digest(place) if self.is_seen(place) else UNSEEN

    def has_informative_import(self) -> bool:
        """Returns whether a file that this one imports has a summary."""
        digest_by_file = {f"={near_file}": self._digest(near_file) for near_file in self.near}
        self.used.update(digest_by_file)
        return not {*digest_by_file.values()} <= {NO_SUMMARY, UNSEEN}

    def exists(self, path: str) -> bool:
        """Returns whether the project has a file at a path relative to its root."""
        does_exist = self.library.modules.exists(path)
        self.used[f"?{path}"] = str(int(does_exist))
        return does_exist


def is_current(used_facts: Mapping[str, str], path: str, library: Library, shelf: Shelf | None = None) -> bool:
    """Returns whether the facts about other files that the check of a file has used are unchanged.

    Args:
        used_facts: what it has used.
        path: The file.
        library: The summaries.
        shelf: What the file may see now; None if it may see the same as then.
    """
    for fact_name, digest in used_facts.items():
        if fact_name.startswith("?"):
            current_answer = str(int(library.modules.exists(fact_name[1:])))
        else:
            module_file = fact_name[1:] if fact_name.startswith("=") else library.modules.find_module(fact_name, path)
            is_seen = digest != UNSEEN if shelf is None or module_file is None else shelf.is_seen(module_file)
            current_answer = NO_FILE if module_file is None else library.digest(module_file) if is_seen else UNSEEN
        if current_answer != digest:
            return False
    return True


def absent_places(used_facts: Mapping[str, str], path: str, modules: Modules) -> Iterator[str]:
    """Yields the places without a file where a new file would outdate the check of a file."""
    for fact_name, digest in used_facts.items():
        if fact_name.startswith("?") and digest == "0":
            yield fact_name[1:]
        elif digest == NO_FILE and fact_name.partition(".")[0]:
            yield from modules.candidate_paths(fact_name, path)
