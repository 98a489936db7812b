"""Records the signatures of Keras's public ops: `python tools/keras_signatures.py KERAS_SOURCE_TREE`.

It reads the source of a release of Keras, unpacked from its sdist, and imports nothing of it. It writes
`tests/ops/keras_signatures.json`, the signature of each function of `keras.ops` and `keras.random` by its shortest
public name, which `tests/ops/test_keras_signatures.py` compares with ours.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "ops" / "keras_signatures.json"
FOLDERS = ("ops", "random")
PREFIX = re.compile(r"keras\.(ops\.|(?=random\.))")


def main(arguments: list[str]) -> int:
    """Writes the record from the source tree that the only argument names; returns the exit status."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    source = Path(arguments[0]) / "keras" / "src"
    files = sorted(path for folder in FOLDERS for path in (source / folder).glob("*.py"))
    signatures = {name: text for path in files for name, text in signatures_of(path.read_text(encoding="utf-8"))}
    if not signatures:
        print(f"{source} has no exported function; expected the unpacked sdist of Keras 3", file=sys.stderr)
        return 1
    record = {"version": version_of(source), "signatures": dict(sorted(signatures.items()))}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{RECORD.relative_to(ROOT)}: {len(signatures)} signatures of Keras {record['version']}")
    return 0


def version_of(source: Path) -> str:
    """Returns the version that the source tree states."""
    source_text = (source / "version.py").read_text(encoding="utf-8")
    return source_text.split('__version__ = "')[1].split('"')[0]


def signatures_of(text: str) -> Iterator[tuple[str, str]]:
    """Yields the shortest public name, without `keras.ops.`, and the parameters of each exported function."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            exported_names = [name for decorator in node.decorator_list for name in _exported_names(decorator)]
            public_names = [PREFIX.sub("", name) for name in exported_names if PREFIX.match(name)]
            if public_names:
                yield min(public_names, key=len), ast.unparse(node.args)


def _exported_names(decorator: ast.expr) -> list[str]:
    """Returns the names that a decorator `keras_export(...)` gives to a function."""
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "keras_export":
        return []
    names = ast.literal_eval(decorator.args[0])
    return [names] if isinstance(names, str) else list(names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
