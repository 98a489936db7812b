"""Lists the mutants by area, and checks that each still applies."""

import functools
import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutants.mutant import ROOT, Mutant
from mutants.planting import Module, PlantingError, plant

# The number of mutants must not fall below this.
FLOOR = 480


def mutants_by_area() -> dict[str, list[Mutant]]:
    """Returns the mutants of each area, in alphabetical order of the areas."""
    folder = Path(__file__).parent / "areas"
    names = sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")
    return {name: list(importlib.import_module(f"mutants.areas.{name}").MUTANTS) for name in names}


@functools.cache
def module_of(path: str, root: Path = ROOT) -> Module:
    """Returns the parsed source of a file, from the root of the repository."""
    return Module.parse(path, (root / path).read_text(encoding="utf-8"))


def fault_messages(catalogue: dict[str, list[Mutant]], floor: int = FLOOR) -> Iterator[str]:
    """Yields a message for each mutant that does not apply, and for each rule that the list as a whole breaks."""
    mutants = [mutant for area in catalogue.values() for mutant in area]
    for name, count in Counter(mutant.name for mutant in mutants).items():
        if count > 1:
            yield f"{name}: {count} mutants have this name: rename all but one"
    count_by_place = Counter((m.module, m.function, m.replacement, m.original, m.nth) for m in mutants)
    for (module, function, _, original, _), count in count_by_place.items():
        if count > 1:
            yield f"{module}, {function}: {count} mutants replace `{original}` alike: delete all but one"
    if len(mutants) < floor:
        yield f"{len(mutants)} mutants are fewer than {floor}: plant another in the area of each that was deleted"
    for area, members in catalogue.items():
        for mutant in members:
            for message in _mutant_messages(mutant):
                yield f"{mutant.name} (tools/mutants/areas/{area}.py): {message}"


def _mutant_messages(mutant: Mutant) -> Iterator[str]:
    if not (ROOT / mutant.module).is_file():
        yield f"{mutant.module} does not exist: name the file that has this code now"
        return
    try:
        plant(mutant, module_of(mutant.module))
    except PlantingError as error:
        yield str(error)
    if not mutant.test_paths():
        yield "it names no tests: name the file whose tests should notice it"
    for path in mutant.test_paths():
        file, *inside = path.split("::")
        if not (ROOT / file).exists():
            yield f"{file} does not exist: name the tests that cover the code now"
            continue
        for part in inside:
            name = part.partition("[")[0]
            if not any(f"{keyword} {name}" in _file_text(file) for keyword in ("def", "class")):
                yield f"{file} has no test {name}: name the test that should notice it"


@functools.cache
def _file_text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")
