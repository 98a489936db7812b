"""`emberlint check`: checks files, and prints or repairs the findings.

Modules that a repeated run over unchanged files does not need are imported inside functions: importing the rules takes
longer than such a run.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from emberlint.commands import options
from emberlint.commands.request import RuleChoice
from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings, pattern_predicate
from emberlint.findings import Finding, Report
from emberlint.reporters import REPORTERS, reporter
from emberlint.reporters.text import detail_lines, report_line, summary_line
from emberlint.run.run_cache import RunCache
from emberlint.source.discover import relative

STDIN = Path("-")


class Options(NamedTuple):
    """The options and arguments of the command `emberlint check`."""

    paths: tuple[Path, ...]
    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    exclude: tuple[str, ...]
    preset: str | None
    target_version: str | None
    min_tier: str | None
    groups: tuple[str, ...]
    form: str | None
    stdin_filename: Path | None
    baseline: Path | None
    diff_base: str | None
    statistics: bool
    explain_inference: str | None
    force_exclude: bool
    unsafe_fixes: bool
    diff: bool
    exit_zero: bool
    jobs: int | None
    no_cache: bool
    verbose: bool
    fix: bool = True  # `emberlint fix` has neither this switch nor the next ones
    add_ignore: bool = False
    baseline_update: bool = False
    watch: bool = False
    show_settings: bool = False


@click.command()
@options.add_selection_options
@click.option(
    "--format",
    "--output-format",
    "form",
    type=click.Choice([*REPORTERS]),
    help="Format of the report, text by default.",
)
@click.option("--stdin-filename", type=click.Path(path_type=Path), help="The path of the source on `-`.")
@click.option("--baseline", type=click.Path(path_type=Path), help="The file of accepted findings.")
@click.option("--baseline-update", is_flag=True, help="Drop unused entries of the baseline; create it if missing.")
@click.option("--diff-base", metavar="REF", help="Report only findings on lines that differ from a commit.")
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
@click.option("--show-settings", is_flag=True, help="Print the settings and exit.")
@click.option("--explain-inference", metavar="FILE:LINE", help="Show which expressions of a line are tensors, and why.")
@click.option("--force-exclude", is_flag=True, help="Skip excluded files even if they are named.")
@click.option("--fix", is_flag=True, help="Make the safe repairs, and report the rest.")
@click.option("--unsafe-fixes", is_flag=True, help="Also make repairs that may change a value's type, dtype or device.")
@click.option("--diff", is_flag=True, help="Print the repairs as a diff, and write nothing.")
@click.option("--add-ignore", is_flag=True, help="Write `# noqa: EMB201` on the lines found; `--diff` shows it only.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until interrupted.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Number of processes; by default the number of cores.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option("-v", "--verbose", is_flag=True, help="Add the evidence and the advice to each finding.")
@click.pass_context
def check(ctx: click.Context, /, **given_options: Any) -> None:
    """Check files and folders; `-` is standard input."""
    cli_options = Options(**given_options)
    if STDIN in cli_options.paths and len(cli_options.paths) > 1:
        raise UsageError("`-` (standard input) cannot be combined with other paths")
    if cli_options.stdin_filename is not None and STDIN not in cli_options.paths:
        raise UsageError("--stdin-filename needs the path `-` (standard input)")
    if cli_options.add_ignore and (
        cli_options.fix or cli_options.unsafe_fixes or cli_options.baseline_update or STDIN in cli_options.paths
    ):
        raise UsageError(
            "--add-ignore takes no repairs, no --baseline-update and no standard input; run `emberlint fix` first"
        )
    if cli_options.watch:
        _watch_files(cli_options)
        return
    if cli_options.explain_inference is not None:
        _explain_place(cli_options.explain_inference)
        return
    paths = [cli_options.stdin_filename or Path("stdin.py") if path == STDIN else path for path in cli_options.paths]
    project_parts = _project_parts(cli_options, paths)
    if cli_options.show_settings:
        click.echo(_settings_text(project_parts[0].settings))
        return
    if (cli_options.diff and not cli_options.add_ignore) or cli_options.fix or cli_options.unsafe_fixes:
        change_flags = [_repair_part(cli_options, project_part) for project_part in project_parts]
        if cli_options.diff or STDIN in cli_options.paths:
            ctx.exit(1 if any(change_flags) and not cli_options.exit_zero else 0)
    if cli_options.add_ignore:
        change_flags = [
            _silence_findings(_findings_to_report(cli_options, project_part)[0], project_part.settings, cli_options)
            for project_part in project_parts
        ]
        if cli_options.diff:
            ctx.exit(1 if any(change_flags) and not cli_options.exit_zero else 0)
    findings = _print_all_findings(cli_options, project_parts)
    ctx.exit(1 if findings and not cli_options.exit_zero else 0)


class Part(NamedTuple):
    """The files of one project, its settings, and the rules that these choose; of standard input its name."""

    settings: Settings
    choice: RuleChoice
    files: Mapping[str, Path]
    stdin: str = ""


def _project_parts(cli_options: Options, places: Sequence[Path]) -> list[Part]:
    """Returns the project that holds the paths, and the projects inside it that have their own settings."""
    cli_settings = cli_options.min_tier, cli_options.exclude, cli_options.target_version, cli_options.preset
    settings = options.settings_for(places, *cli_settings)
    if STDIN in cli_options.paths:
        return [Part(settings, _rule_choice(cli_options, settings), {}, relative(places[0], settings.root))]
    file_by_path = options.files_for(places, settings, cli_options.force_exclude)
    nested_projects = options.nested_projects(file_by_path, settings)
    nested_paths = {file for nested_files in nested_projects.values() for file in nested_files.values()}
    own_file_by_path = {path: file for path, file in file_by_path.items() if file not in nested_paths}
    project_parts = [Part(settings, _rule_choice(cli_options, settings), own_file_by_path)]
    named_paths = {path.absolute() for path in places if path.is_file() and not cli_options.force_exclude}
    for root, nested_files in nested_projects.items():
        local_settings = options.settings_at(root, *cli_settings)
        is_excluded = pattern_predicate(local_settings.exclude)
        kept_file_by_path = {
            path: file for path, file in nested_files.items() if file.absolute() in named_paths or not is_excluded(path)
        }
        project_parts.append(Part(local_settings, _rule_choice(cli_options, local_settings), kept_file_by_path))
    return project_parts


def _rule_choice(cli_options: Options, settings: Settings) -> RuleChoice:
    return options.rule_choice(
        settings, cli_options.select, cli_options.ignore, cli_options.groups, cli_options.extend_select
    )


def _print_all_findings(cli_options: Options, parts: Sequence[Part]) -> list[Finding]:
    """Prints the findings of all parts, and returns them."""
    findings: list[Finding] = []
    file_count = 0
    for project_part in parts:
        part_findings, part_file_count = _findings_to_report(cli_options, project_part)
        findings += options.findings_with_shown_paths(part_findings, project_part.settings)
        file_count += part_file_count
    _print_findings(findings, file_count, cli_options, cli_options.form or parts[0].settings.output_format)
    return findings


def _watch_files(cli_options: Options) -> None:
    """Checks the files now, and again whenever a file, the settings or the baseline changes."""
    from emberlint.commands.watch import stamps, watch

    changing_options = (
        cli_options.fix,
        cli_options.unsafe_fixes,
        cli_options.diff,
        cli_options.add_ignore,
        cli_options.baseline_update,
        cli_options.show_settings,
    )
    if any(changing_options) or cli_options.explain_inference is not None or STDIN in cli_options.paths:
        raise UsageError("--watch only checks files: it takes no repairs, no --explain-inference and no standard input")

    def watched_state() -> object:
        watched_paths: list[Path] = []
        for project_part in _project_parts(cli_options, cli_options.paths):
            baseline_file = _baseline_file(cli_options, project_part.settings)
            watched_paths += [
                project_part.settings.root / "pyproject.toml",
                *project_part.files.values(),
                *([baseline_file] if baseline_file else []),
            ]
        return stamps(watched_paths)

    def run_check() -> None:
        _print_all_findings(cli_options, _project_parts(cli_options, cli_options.paths))

    watch(watched_state, run_check)


def _findings_to_report(cli_options: Options, part: Part) -> tuple[list[Finding], int]:
    """Returns the findings that neither the baseline nor `--diff-base` leaves out, and the number of files."""
    report = _check_part(cli_options, part)
    findings = _findings_not_accepted(report, part.settings, part.choice, cli_options)
    if cli_options.diff_base is not None:
        from emberlint.run.changed import changed_lines, is_changed

        ranges_by_path = changed_lines(part.settings.root, cli_options.diff_base)
        findings = [finding for finding in findings if is_changed(finding, ranges_by_path)]
    return findings, len(report.paths)


def _silence_findings(findings: Sequence[Finding], settings: Settings, cli_options: Options) -> bool:
    """Writes comments on the lines of findings, or shows them with --diff; returns whether any file changes."""
    from emberlint.run.ignore import silence

    silenced_files = silence(findings, settings, write=not cli_options.diff)
    for path, silenced_file in silenced_files.items() if cli_options.diff else ():
        click.echo("".join(silenced_file.change.diff(options.display_path(path, settings))), nl=False)
    line_count, file_count = sum(file.lines for file in silenced_files.values()), len(silenced_files)
    click.echo(
        f"{line_count} line{'s'[line_count == 1 :]} in {file_count} file{'s'[file_count == 1 :]} silenced", err=True
    )
    return bool(silenced_files)


def _check_part(cli_options: Options, part: Part) -> Report:
    settings, rule_choice, file_by_path, stdin = part
    if stdin:
        return _check_stdin(cli_options, stdin, settings, rule_choice)
    run_cache = None if cli_options.no_cache else RunCache(settings, rule_choice.words, file_by_path)
    recalled_report = None if run_cache is None else run_cache.recall_findings()
    if recalled_report is not None:
        return Report(recalled_report, tuple(file_by_path))
    from emberlint.run.engine import check
    from emberlint.run.pool import default_jobs

    report = check(
        file_by_path, settings, rule_choice.codes, cli_options.jobs or default_jobs(), not cli_options.no_cache
    )
    if run_cache is not None:
        run_cache.store_report(report)
    return report


def _check_stdin(cli_options: Options, path: str, settings: Settings, choice: RuleChoice) -> Report:
    from emberlint.run.engine import check_content

    return check_content(path, options.read_stdin(), settings, choice.codes, cached=not cli_options.no_cache)


def _repair_part(cli_options: Options, part: Part) -> bool:
    """Repairs the files, or shows the repairs with --diff; returns whether anything changes."""
    from emberlint.run.repair import RepairSession, repair_content, repair_file

    settings, rule_choice, file_by_path, stdin_path = part
    if stdin_path:
        result_by_path = {
            stdin_path: repair_content(
                stdin_path, options.read_stdin(), settings, rule_choice.codes, cli_options.unsafe_fixes
            )
        }
        if not cli_options.diff:
            click.echo(result_by_path[stdin_path].after, nl=False)
    else:
        repair_session = RepairSession(settings, rule_choice.codes, not cli_options.no_cache)
        result_by_path = {
            path: repair_file(
                path, file, settings, rule_choice.codes, cli_options.unsafe_fixes, not cli_options.diff, repair_session
            )
            for path, file in file_by_path.items()
        }
        repair_session.cache.save()
    for path, repaired_file in result_by_path.items():
        if cli_options.diff:
            click.echo("".join(repaired_file.diff(options.display_path(path, settings))), nl=False)
        for finding, reason in repaired_file.refused if cli_options.verbose else ():
            click.echo(
                f"{report_line(*options.findings_with_shown_paths([finding], settings))}: not repaired: {reason}",
                err=True,
            )
    return any(repaired_file.after != repaired_file.before for repaired_file in result_by_path.values())


def _baseline_file(cli_options: Options, settings: Settings) -> Path | None:
    return cli_options.baseline or (settings.root / settings.baseline if settings.baseline else None)


def _findings_not_accepted(
    report: Report, settings: Settings, choice: RuleChoice, cli_options: Options
) -> list[Finding]:
    baseline_file = _baseline_file(cli_options, settings)
    if baseline_file is None:
        if cli_options.baseline_update:
            raise UsageError("--baseline-update needs --baseline FILE or the key `baseline`")
        return report.findings
    from emberlint.run import baseline as accepted

    checked_paths = frozenset(report.paths)
    if cli_options.baseline_update:
        accepted.shrink_baseline(baseline_file, report.findings, checked_paths)
    findings, unused_entries = accepted.apply_baseline(report.findings, accepted.read_entries(baseline_file))
    stale_count_by_entry = Counter(
        {entry: count for entry, count in unused_entries.items() if entry.code in choice.codes}
    )
    if "EMB905" in choice.codes:
        findings += accepted.stale_findings(
            baseline_file, relative(baseline_file, settings.root), stale_count_by_entry, checked_paths
        )
    return findings


def _print_findings(findings: Sequence[Finding], files: int, cli_options: Options, form: str) -> None:
    is_quiet = form != "text"
    if cli_options.verbose and not is_quiet:
        output_lines = [text for finding in findings for text in (report_line(finding), *detail_lines(finding))]
    else:
        output_lines = [*reporter(form)(findings)]
    if output_lines:
        click.echo("\n".join(output_lines))
    if cli_options.statistics:
        for (code, name), finding_count in Counter((finding.code, finding.name) for finding in findings).most_common():
            click.echo(f"{finding_count:6} {code} {name}", err=is_quiet)
    if not is_quiet:
        click.echo(summary_line(len(findings), files), err=True)


def _explain_place(place: str) -> None:
    from emberlint.run.engine import source_file_with_imports
    from emberlint.source.reading import read_source

    place_match = re.fullmatch(r"(.+?\.ipynb):(?:cell )?(\d+):(\d+)", place) or re.fullmatch(r"(.+):()(\d+)", place)
    if place_match is None:
        raise UsageError(f"--explain-inference: expected FILE:LINE, or NOTEBOOK:CELL:LINE, got {place!r}")
    path, cell, line_number = Path(place_match[1]), int(place_match[2] or 0), int(place_match[3])
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    settings = options.settings_for([path])
    try:
        text, notebook = read_source(path.name, path.read_bytes())
        if notebook is not None:
            line_number = notebook.joined_line(cell, line_number)
        file = source_file_with_imports(relative(path, settings.root), text, settings)
        explanations = [
            explanation if notebook is None else notebook.reword_lines(explanation)
            for explanation in file.inference.explain(line_number)
        ]
    except (SyntaxError, ValueError, RecursionError, OSError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    click.echo(
        "\n".join(explanations) if explanations else f"no expression other than a constant begins on line {line_number}"
    )


def _settings_text(settings: Settings) -> str:
    value_by_key = {
        **settings._asdict(),
        "min_tier": settings.min_tier.name if settings.min_tier else None,
        "contracts": [contract._asdict() for contract in settings.contracts],
        "parity": settings.parity._asdict(),
    }
    return json.dumps({key.replace("_", "-"): value for key, value in value_by_key.items()}, indent=2, default=str)
