"""The check for packages that some commands need and a plain installation does not have."""

import importlib.util

import click


def require_packages(command: str, extra: str, *packages: str) -> None:
    """Checks that packages are installed, without importing them.

    Raises:
        click.ClickException: if one is missing; the message has the extra that installs it.
    """
    missing_packages = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing_packages:
        raise click.ClickException(
            f'emberharmony {command} needs {" and ".join(missing_packages)}: pip install "emberharmony[{extra}]"'
        )
