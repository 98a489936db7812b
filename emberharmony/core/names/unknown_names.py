"""The errors for names that a public package or a backend lacks.

An unknown name has a hint as an attribute (`ops.randn`). In an import (`from emberharmony.ops import randn`) Python
asks the same `__getattr__` and replaces its error by an `ImportError`, which gets the hint when it ends a program
(`core.display.hints`). A hint takes milliseconds, so the message computes it when it is read: `hasattr(ops, name)`
reads none and takes 3 µs.
"""


class HintedText(str):
    """A message whose hint is computed when the message is read.

    A hint takes milliseconds, and the error of a failing `hasattr(x, name)` or `getattr(x, name, None)` is never read.
    """

    __slots__ = ("unknown",)
    unknown: tuple[str, str, str]
    """The arguments of `spellings.hint_for_name`."""

    def __str__(self) -> str:
        # Imported here, because only messages that are read need it.
        from emberharmony.core.names.spellings import hint_for_name

        return f"{super().__str__()}{hint_for_name(*self.unknown)}"

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def missing_name_error(owner: str, kind: str, name: str, space: str = "ops", called: str = "ops") -> AttributeError:
    """Returns the error for a name that an object lacks; its message gets a hint when it is read.

    Args:
        owner: the object, in words.
        kind: "attribute" or "op".
        name: the unknown name.
        space: the namespace of the names that the object has.
        called: the name that stands for `ops` in the hint.
    """
    message = f"{owner} has no {kind} {name!r}"
    if not name.startswith("_"):
        message = HintedText(message)
        message.unknown = name, space, called
    # The error gets no `obj`, with which the interpreter would add a suggestion of its own (CPython 3.12).
    return AttributeError(message, name=name)


def unknown_name_error(module: str, name: str) -> AttributeError:
    """Returns the error for a name that a public package, such as `ops` or one of its namespaces, does not have."""
    return missing_name_error(f"module {module!r}", "attribute", name, module.removeprefix("emberharmony").lstrip("."))
