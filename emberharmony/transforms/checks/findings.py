"""The findings of the checks of `ops.checked`, which are collected, and raised as errors or given as warnings."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from emberharmony.core.errors import ArgumentError, CheckError, CheckWarning, NonFiniteError

POLICIES = ("raise", "warn", "record")


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes:
        check: the check: "nan", "dtype", "device", "lazy" or "gradients".
        op: the op of the program; in the backward pass, that whose gradient it is.
        text: the whole message.
        path: the module that called the op, such as "Net.h.1.attn"; "" outside of modules.
        line: the user's line, as "file:line".
        backend: the name of the backend.
        backward: whether it happened in the backward pass.
        inner: the op inside of a composite that made the number that is not finite, if it is known; otherwise "".
    """

    check: str
    op: str
    text: str
    path: str = ""
    line: str = ""
    backend: str = ""
    backward: bool = False
    inner: str = ""

    def __str__(self) -> str:
        return self.text


class Findings(list[Finding]):
    """What the checks of a block found, in order.

    Args:
        policy: what happens with a finding, or None for that of each check.
    """

    def __init__(self, policy: str | None) -> None:
        super().__init__()
        if policy is not None and policy not in POLICIES:
            raise ArgumentError(f"checked() has the policies {', '.join(map(repr, POLICIES))}, not {policy!r}")
        self._policy = policy
        self._known_keys: set[tuple[str, str, str, str]] = set()

    def add(self, finding: Finding) -> None:
        """Adds a finding, unless the same check found the same in this line before, and raises or warns.

        Raises:
            CheckError: if the policy is "raise".
        """
        policy = self._policy or ("raise" if finding.check == "nan" else "warn")
        key = finding.check, finding.op, finding.path, finding.line
        if key in self._known_keys and policy != "raise":
            return
        self._known_keys.add(key)
        self.append(finding)
        if policy == "raise":
            raise (NonFiniteError if finding.check == "nan" else CheckError)(finding.text, finding)
        if policy == "warn":
            warnings.warn(finding.text, CheckWarning, stacklevel=2)


def place_text(path: str, line: str) -> str:
    """Returns the end of a message that says where something happened: "; in model.0; at f.py:3"."""
    return "".join(f"; {text}" for text in _place_texts(path, line))


def _place_texts(path: str, line: str) -> Iterable[str]:
    if path:
        yield f"in {path}"
    if line:
        yield f"at {line}"
