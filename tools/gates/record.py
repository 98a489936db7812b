"""The file of a record: which gate made it, on which backend, and what it found for each op."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Record:
    """What a gate found on a backend.

    Args:
        gate: "probe", "variants", "steps" or "programs".
        backend: the name of the backend.
        ops: by op, optimizer or program, the findings by the name of a call, or of a part of the compiled op.
    """

    gate: str
    backend: str
    ops: dict[str, dict[str, Any]]

    def write(self, path: Path) -> None:
        """Writes the record into a file, one op to a line."""
        lines = [
            f"{json.dumps(op)}: {json.dumps(outcomes, sort_keys=True)}" for op, outcomes in sorted(self.ops.items())
        ]
        header = json.dumps({name: value for name, value in asdict(self).items() if name != "ops"})
        path.write_text(header[:-1] + ', "ops": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Reads a record from a file.

        Raises:
            ValueError: if the file is not one of `write`.
        """
        fields = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or fields.keys() != {"gate", "backend", "ops"}:
            raise ValueError("it has no gate, backend and ops")
        return cls(**fields)


def stable_text(value: Any) -> str:
    """Returns a value as text that is the same in each process, without addresses."""
    return _ADDRESS.sub("0x…", str(value))
