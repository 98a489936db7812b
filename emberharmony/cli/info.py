"""`emberharmony info`: versions, devices, the active backend, and where its choice came from."""

import json
import platform
import sys
from typing import Any

import click

from emberharmony.backend import available_backends, current
from emberharmony.backend.discovery import BUILTIN, install_line, load
from emberharmony.core import selection
from emberharmony.core.dispatch import DISPATCH, REASON
from emberharmony.core.errors import EmberError
from emberharmony.core.state import settings
from emberharmony.version import __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json: bool) -> None:
    """Show versions, backends, devices and the active backend."""
    facts = collect_facts()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"emberharmony {facts['emberharmony']}, Python {facts['python']}, {facts['platform']}")
    active_facts = facts["active"]
    if active_facts["error"]:
        click.echo(f"active: none: {active_facts['error']}")
    else:
        click.echo(f"active: {active_facts['backend']} (from {active_facts['source']}), on {active_facts['device']}")
    click.echo(f"dispatch: {facts['dispatch']['kind']} ({facts['dispatch']['reason']})")
    for name, backend_facts in facts["backends"].items():
        devices_text = f", devices {', '.join(backend_facts['devices'])}" if backend_facts["devices"] else ""
        click.echo(f"  {name} {backend_facts['version']}{devices_text}")
        for device, precision in backend_facts.get("precision", {}).items():
            precision_text = ", ".join(f"{product_name} in {state}" for product_name, state in precision.items())
            click.echo(f"    float32 on {device}: {precision_text}")
    for name in facts["missing"]:
        click.echo(f"  {name} is not installed: {install_line(name)}")
    click.echo(f"settings: {facts['settings']}")


def collect_facts() -> dict[str, Any]:
    """Returns the versions, backends, devices and active backend that `emberharmony info` shows, as JSON data."""
    active_facts: dict[str, Any] = {"backend": None, "source": None, "device": None, "error": None}
    try:
        active_backend = current()
        active_facts.update(
            backend=active_backend.name, source=selection.backend_source(), device=active_backend.get_default_device()
        )
    except EmberError as error:
        active_facts["error"] = str(error)
    facts_by_backend = available_backends()
    for name, entry in facts_by_backend.items():
        if entry["devices"]:
            entry["precision"] = {device: load(name).product_precision(device) for device in entry["devices"]}
    return {
        "emberharmony": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "active": active_facts,
        "dispatch": {"kind": DISPATCH, "reason": REASON},
        "backends": facts_by_backend,
        "missing": [name for name in BUILTIN if name not in facts_by_backend],
        "settings": str(settings.path()),
    }
