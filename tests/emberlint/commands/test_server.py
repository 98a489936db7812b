"""`emberlint server` without the package that it needs."""

import pytest
from click.testing import CliRunner

from emberlint.cli import main
from emberlint.commands import server as module


def test_without_pygls_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'pygls'", name="pygls")

    assert module.server.callback is not None
    monkeypatch.setitem(module.server.callback.__globals__, "import_module", missing)
    result = CliRunner().invoke(main, ["server"])
    assert result.exit_code == 2
    assert result.stderr == "emberlint: the server needs pygls: pip install 'emberlint[server]'\n"
