"""Runs the rules over files, with cache and process pool, and over the project as a whole."""

import os
import signal
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.findings import Encoded, Finding, Report, decode_finding, encode_finding
from emberlint.rule import AnyRule, ProjectRule
from emberlint.run.check import check_text, fingerprint, ignored, is_sure
from emberlint.run.file_cache import FileCache, digest
from emberlint.run.registry import all_rules, chosen
from emberlint.run.results import FileResult, decode, encode
from emberlint.run.suppress import apply
from emberlint.source.project import Project

POOL_FROM = 400_000  # bytes to read anew, below which starting processes costs more than it saves
BATCH = 24  # files
PROJECT = "<project>"  # the cache's key for what the project rules found


def check(
    files: Mapping[str, Path], settings: Settings, codes: frozenset[str], jobs: int = 1, cached: bool = True
) -> Report:
    """Check files on disk; UsageError for settings that name what is not there."""
    for words in settings.per_file_ignores.values():
        chosen(words, ())
    cache = FileCache(settings, codes, cached)
    results: dict[str, FileResult] = {}
    contents: dict[str, bytes] = {}
    for path, file in files.items():
        try:
            contents[path] = file.read_bytes()
        except OSError as error:
            results[path] = _unreadable(path, error)
    keys = {path: digest(content) for path, content in contents.items()}
    for path, key in keys.items():
        entry = cache.get(path, key)
        if entry is not None:
            results[path] = decode(entry)
    missing = {path: content for path, content in contents.items() if path not in results}
    for path, encoded in _run(missing, settings, codes, jobs):
        results[path] = decode(encoded)
        cache.put(path, keys[path], encoded)
    project = Project(settings, known={path: result.imports for path, result in results.items()})
    findings = [*_merge(results, _project_findings(project, codes, cache), settings, codes)]
    cache.save()
    return Report(findings, tuple(files))


def check_texts(texts: Mapping[str, str], settings: Settings, codes: frozenset[str], cached: bool = False) -> Report:
    """Check texts that need not be on disk: standard input, examples. The cache is read for the rest of the project."""
    results = {path: check_text(path, text, settings, codes) for path, text in texts.items()}
    project = Project(settings, texts=texts, known={path: result.imports for path, result in results.items()})
    beyond = _project_findings(project, codes, FileCache(settings, codes, cached))
    return Report([*_merge(results, beyond, settings, codes)], tuple(texts))


def check_content(path: str, content: bytes, settings: Settings, codes: frozenset[str], cached: bool = True) -> Report:
    """Check what a file holds, or would: standard input."""
    try:
        text = read_text(content)
    except (SyntaxError, UnicodeDecodeError) as error:
        return Report([*_unreadable(path, error).findings], (path,))
    return check_texts({path: text}, settings, codes, cached)


def read_text(content: bytes, newline: str | None = None) -> str:
    """Return the source text of a file, by its own declaration of encoding; with plain line ends, or as it has them.

    Raises: SyntaxError for a declaration that makes no sense, UnicodeDecodeError where it does not hold.
    """
    encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
    return TextIOWrapper(BytesIO(content), encoding, newline=newline).read()


def _check_bytes(path: str, content: bytes, settings: Settings, codes: frozenset[str]) -> FileResult:
    try:
        text = read_text(content)
    except (SyntaxError, UnicodeDecodeError) as error:
        return _unreadable(path, error)
    return check_text(path, text, settings, codes)


def _unreadable(path: str, error: Exception) -> FileResult:
    what = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
    return FileResult((all_rules()["EMB000"].at(path, (1, 1, 1, 1), what=what),), (), ())


def _check_batch(
    batch: list[tuple[str, bytes]], settings: Settings, codes: frozenset[str]
) -> list[tuple[str, Encoded]]:
    return [(path, encode(_check_bytes(path, content, settings, codes))) for path, content in batch]


def _run(
    contents: Mapping[str, bytes], settings: Settings, codes: frozenset[str], jobs: int
) -> Iterator[tuple[str, Encoded]]:
    pending = [*contents.items()]
    if jobs <= 1 or sum(map(len, contents.values())) < POOL_FROM:
        yield from _check_batch(pending, settings, codes)
        return
    # Not at the top: a warm run needs no pool, and its import takes a tenth of one.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children

    others = active_children()
    batches = [pending[start : start + BATCH] for start in range(0, len(pending), BATCH)]
    with ProcessPoolExecutor(min(jobs, len(batches))) as pool:
        try:
            with _interrupts_held():
                running = [pool.submit(_check_batch, batch, settings, codes) for batch in batches]
            for done in running:
                yield from done.result()
        except BaseException:
            for worker in active_children():  # else an interrupt would wait for what they have begun
                if worker not in others:
                    worker.terminate()
            raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; the processes begun meanwhile never get it, and leave it to the one that the user started."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def default_jobs() -> int:
    """Return how many processes this one may use at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _project_rules(codes: frozenset[str]) -> dict[str, ProjectRule]:
    return {code: rule for code, rule in all_rules().items() if code in codes and isinstance(rule, ProjectRule)}


def _project_findings(project: Project, codes: frozenset[str], cache: FileCache) -> list[Finding]:
    if not project.settings.project_folders or not _project_rules(codes):
        return []
    paths = {path for folder in project.settings.project_folders for path in project.files(folder)}
    digests = {path: _digest_of(project, path) for path in sorted(paths)}
    key = digest("\n".join(f"{path} {one}" for path, one in digests.items()))
    entry = cache.get(PROJECT, key)
    if entry is not None:
        return [decode_finding(one) for one in entry]
    kept = {path: cache.get(path, one) for path, one in digests.items()}
    known = {path: decode(entry).imports for path, entry in kept.items() if entry is not None}
    findings = [*_run_project(replace(project, known={**known, **project.known}), codes)]
    cache.put(PROJECT, key, [encode_finding(one) for one in findings])
    return findings


def _digest_of(project: Project, path: str) -> str:
    if path in project.texts:
        return digest(project.texts[path])
    try:
        return digest((project.settings.root / path).read_bytes())
    except OSError:
        return "unreadable"


def _run_project(project: Project, codes: frozenset[str]) -> Iterator[Finding]:
    for rule in _project_rules(codes).values():
        for finding in rule.check(project):
            lines = project.text(finding.path).split("\n")
            yield finding._replace(fingerprint=fingerprint(finding, lines))


def _merge(
    results: Mapping[str, FileResult], beyond: Iterable[Finding], settings: Settings, codes: frozenset[str]
) -> Iterator[Finding]:
    """Yield what is left after the comments had their say, in the order of the files."""
    by_path: dict[str, list[Finding]] = {}
    for finding in beyond:
        by_path.setdefault(finding.path, []).append(finding)
    for path, result in results.items():
        kept = [one for one in by_path.get(path, ()) if _passes(all_rules()[one.code], one, settings)]
        silenced = ignored(path, settings)
        found = apply(path, [*result.findings, *kept], result.directives, codes - silenced)
        yield from sorted(found, key=lambda one: (one.line, one.column, one.code))


def _passes(rule: AnyRule, finding: Finding, settings: Settings) -> bool:
    role = settings.role(finding.path)
    silenced = ignored(finding.path, settings)
    return role.kind in rule.roles and finding.code not in silenced and is_sure(rule, finding, settings)
