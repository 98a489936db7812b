"""The matrix shared by the three parity rules, so that they read the project once."""

from emberlint.config.errors import UsageError
from emberlint.parity.layout import find_layout
from emberlint.parity.matrix import Matrix, build_matrix
from emberlint.source.project import Project

_latest: list[tuple[Project, Matrix | None]] = []


def current_matrix(project: Project) -> Matrix | None:
    """Returns the matrix of a project, or None unless its settings name both the frontend and the backends."""
    parity = project.settings.parity
    if not (parity.frontend and parity.backend):
        return None
    if not _latest or _latest[0][0] is not project:
        layout = find_layout(project)
        if layout is None:
            raise UsageError(
                f"[tool.emberlint] parity: no backends in {parity.backend!r}, or nothing in {parity.frontend!r}"
            )
        _latest[:] = [(project, build_matrix(project, layout))]
    return _latest[0][1]
