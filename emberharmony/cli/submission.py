"""`--device` and `--report`: a command runs on one device, and writes a file about it that anyone may submit.

docs/reports/ collects such files, and the documentation shows them in a table.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from typing import Any

import click

from emberharmony.backend.discovery import load
from emberharmony.core.errors import DeviceError, UnsupportedOpError
from emberharmony.core.state.files import replace_text
from emberharmony.core.types import BackendName
from emberharmony.version import __version__

FORMAT = 1
"""The version of the format of the report file."""

_FILE = click.Path(dir_okay=False)
device_option = click.option(
    "--device", metavar="NAME", help="Run on this device, such as cuda, mps or gpu, where the backend has it."
)
report_option = click.option(
    "--report", "report_file", type=_FILE, help="Write a report on this machine to this file, which you may submit."
)


def check_writable(*files: str | None) -> None:
    """Checks that files can be written, before the work whose results they get.

    Raises:
        click.UsageError: if the folder of a file is missing or read-only; None is no file.
    """
    for file in filter(None, files):
        if not os.access(os.path.dirname(os.path.abspath(file)), os.W_OK):
            raise click.UsageError(f"cannot write {file}: its folder is missing or read-only")


@contextlib.contextmanager
def use_device(names: Sequence[str], device: str | None) -> Iterator[list[str]]:
    """Makes a device the default of backends while a `with` block runs; returns those that have it.

    Args:
        names: the backends; the message of the error names their devices.
        device: the device; None leaves each backend its own choice.

    Raises:
        click.UsageError: if none has the device.
    """
    names_with_device, reasons_without_device = [], []
    with contextlib.ExitStack() as stack:
        for name in names:
            try:
                if device is not None:
                    stack.enter_context(load(BackendName(name)).device_scope(device))
                names_with_device.append(name)
            except (DeviceError, UnsupportedOpError) as error:
                reasons_without_device.append(f"{name}: {error}")
        if device is not None and not names_with_device:
            raise click.UsageError(f"no backend has the device {device!r}: {'; '.join(reasons_without_device)}")
        yield names_with_device


def write_report(
    file: str, command: str, backends: Sequence[str], device: str | None, seconds: float, result: dict[str, Any]
) -> None:
    """Writes what a command found on this machine, as JSON.

    Args:
        file: the path.
        command: the command.
        backends: the backends on which it ran.
        device: the device on which it ran; None for the default of each backend.
        seconds: how long it took.
        result: what it found.
    """
    write_report_with_facts(
        file, command, {name: _describe_backend(name, device) for name in backends}, seconds, result
    )


def write_report_with_facts(
    file: str, command: str, backends: dict[str, Any], seconds: float, result: dict[str, Any]
) -> None:
    """Writes what a command found on this machine, as JSON, where the backends are described already."""
    command_report = {
        "format": FORMAT,
        "command": command,
        "emberharmony": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "backends": backends,
        "seconds": round(seconds, 3),
        "result": result,
    }
    replace_text(file, json.dumps(command_report, indent=1) + "\n")
    click.echo(f"wrote a report on this machine to {file}", err=True)


def _describe_backend(name: str, device: str | None) -> dict[str, Any]:
    backend = load(BackendName(name))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(DeviceError, UnsupportedOpError):  # the other side of a comparison may lack the device
            if device is not None:
                stack.enter_context(backend.device_scope(device))
        device_name = str(backend.bound.get_default_device())
        backend_facts = {
            "version": str(backend.version),
            "device": device_name,
            "model": backend.device_model(device_name),
        }
        return {**backend_facts, "precision": backend.product_precision()}
