"""`emberharmony doctor`: says what this machine has, and checks what its libraries and devices break."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from emberharmony.backend.discovery import backend_names, install_line, is_installed
from emberharmony.cli.submission import check_writable, report_option, write_report_with_facts
from emberharmony.core.errors import suggest
from emberharmony.testing.doctor import machine
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, Finding
from emberharmony.testing.doctor.process import findings_of_backend


@click.command()
@click.option("--backend", "names", multiple=True, help="Check this backend (repeatable); default: all installed.")
@click.option("--device", metavar="NAME", help="Check this device, such as cuda, mps or gpu, where a backend has it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@report_option
def doctor(names: tuple[str, ...], device: str | None, as_json: bool, report_file: str | None) -> None:
    """Say what this machine has, and check what its libraries and devices break.

    Each check is OK, differs (with the page that describes the difference) or broken (with a program of three lines).
    Each backend is checked in a process of its own. The exit status is 1 if something is broken, and 0 if not.
    """
    chosen_names = list(names) or [name for name in backend_names() if is_installed(name)]
    for name in chosen_names:
        if name not in backend_names():
            raise click.UsageError(f"no backend is named {name!r}{suggest(name, backend_names())}")
        if not is_installed(name):
            raise click.UsageError(f"{name} is not installed: {install_line(name)}")
    check_writable(report_file)
    start_time = time.perf_counter()
    machine_facts = machine.facts()
    if not as_json:
        _show_facts(machine_facts)
    facts_by_backend: dict[str, Any] = {}
    findings = []
    for finding in _all_findings(chosen_names, device, facts_by_backend):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    seconds = time.perf_counter() - start_time
    count_by_verdict = {
        verdict: sum(finding.verdict == verdict for finding in findings) for verdict in (OK, DIFFERS, BROKEN)
    }
    result_record = {
        "facts": machine_facts,
        "counts": count_by_verdict,
        "findings": [_printed_fields(finding) for finding in findings],
    }
    if as_json:
        click.echo(json.dumps({"backends": facts_by_backend, "seconds": round(seconds, 1), **result_record}, indent=1))
    else:
        click.echo(f"{', '.join(f'{count} {verdict}' for verdict, count in count_by_verdict.items())}, {seconds:.0f} s")
    if report_file:
        write_report_with_facts(report_file, "doctor", facts_by_backend, seconds, result_record)
    if count_by_verdict[BROKEN]:
        sys.exit(1)


def _all_findings(names: Sequence[str], device: str | None, backends: dict[str, Any]) -> Iterator[Finding]:
    """Yields the findings about the machine and about each backend, and notes what the backends have."""
    yield from machine.findings(os.environ)
    missing_device_texts = []
    for name in names:
        for finding in findings_of_backend(name, device):
            if isinstance(finding, Finding):
                yield finding
            elif isinstance(finding, str):
                missing_device_texts.append(finding)
            else:
                backends[name] = finding
    if len(missing_device_texts) == len(names):
        raise click.UsageError(f"no backend has the device {device!r}: {'; '.join(missing_device_texts)}")


def _printed_fields(finding: Finding) -> dict[str, Any]:
    """Returns the fields of a finding as a dict, without empty ones, and with `~` for the user's folder."""
    printed_fields = {name: value for name, value in asdict(finding).items() if value}
    return {
        name: machine.text_without_home(value) if isinstance(value, str) else value
        for name, value in printed_fields.items()
    }


def _show_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        value_text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        click.echo(f"{name}: {value_text}")


def _print_finding(finding: Finding) -> None:
    row_text = f" ({finding.row})" if finding.row else ""
    click.echo(f"{finding.verdict:8}{finding.subject} {finding.check}: {finding.detail}{row_text}")
    for line in finding.repro.splitlines():
        click.echo(f"        {line}")
