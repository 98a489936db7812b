"""Named tuples like `typing.NamedTuple`, but ten times faster to define, which makes each import faster."""

from operator import itemgetter
from typing import TYPE_CHECKING, Any

__all__ = ["Record"]

if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:

    class Record(tuple):
        """The base class of named tuples; its subclasses are written and used like those of `typing.NamedTuple`."""

        __slots__ = ()
        _fields = ()
        _field_defaults = {}  # noqa: RUF012  (NamedTuple has this name and type)

        def __init_subclass__(cls) -> None:
            fields = tuple(cls.__annotations__)
            cls._fields = cls.__match_args__ = fields
            cls._field_defaults = {name: cls.__dict__[name] for name in fields if name in cls.__dict__}
            for i, name in enumerate(fields):
                setattr(cls, name, property(itemgetter(i)))

        def __new__(cls, *values: Any, **named: Any) -> Any:
            """Returns a tuple of the fields, given by position or by name."""
            if len(values) == len(cls._fields) and not named:
                return tuple.__new__(cls, values)
            keyword_fields = cls._fields[len(values) :]
            if keyword_fields:
                values_by_name = cls._field_defaults | named
                try:
                    values += tuple([values_by_name[name] for name in keyword_fields])
                except KeyError as error:
                    raise TypeError(f"{cls.__name__}() is missing the field {error}") from None
            if len(values) != len(cls._fields) or not named.keys() <= set(keyword_fields):
                raise TypeError(f"{cls.__name__}() takes the fields {', '.join(cls._fields)}, each once")
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values: Any) -> Any:
            return cls(*values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **named: Any) -> Any:
            return type(self)(**(self._asdict() | named))

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            fields_text = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({fields_text})"
