"""The definitions of a backend's ops: classes of one category each, most of which are imported at the first use."""

from collections.abc import Iterable
from typing import Any, ClassVar

from emberharmony.backend.promote import Direct, Promotion
from emberharmony.core.deferred import module_of
from emberharmony.core.registry import OPS, OpSpec, complete


class Categories:
    """The part of a backend that knows where its definitions of ops are."""

    categories: ClassVar[dict[str, str]] = {}
    """The classes of definitions that are not imported yet, by the place of their category (`OpSpec.category_path`).

    The class for "images/fft" is in the module `images.fft_ops` of the backend's package. What it and its bases define
    becomes attributes of the backend's class: the ops of its category, none of which `Backend` defines too, and methods
    that only these call."""
    definers: ClassVar[tuple[type, ...]] = ()
    """The classes of definitions that have been imported."""
    promotion: ClassVar[Promotion | None] = None
    """By what the definitions of ops whose declarations say what they take become whole ops; None leaves them."""

    def __init_subclass__(cls) -> None:
        """Imports the definitions of the base classes, because the methods of a subclass may name their attributes."""
        for base_class in cls.__mro__[1:]:
            for category in list(vars(base_class).get("categories", ())):
                base_class._import_category(category)  # type: ignore[attr-defined]

    def __dir__(self) -> Iterable[str]:
        """Returns the names of all attributes, the ops among them."""
        self.import_categories()
        return super().__dir__()

    @classmethod
    def import_categories(cls) -> None:
        """Imports the definitions of all categories of ops."""
        for category in list(cls.categories):
            cls._import_category(category)

    @classmethod
    def _import_category(cls, place: str) -> None:
        """Imports the definitions of a category, and makes them attributes of the class that names them.

        Two threads may do it at once, and make it of the same definitions.
        """
        categories = cls.categories
        class_name = categories.get(place)
        if class_name is None:
            return
        owner: Any = next(kind for kind in cls.__mro__ if vars(kind).get("categories") is categories)
        category_class = getattr(module_of(f"{owner.__module__}.{place.replace('/', '.')}_ops"), class_name)
        definition_classes = category_class.__mro__[:-1]
        cls._complete_definitions(definition_classes)
        attributes = {
            name: attribute
            for definer in reversed(definition_classes)
            for name, attribute in vars(definer).items()
            if not name.startswith("__")
        }
        for attribute_name in sorted(attributes, key=OPS.__contains__):  # ops last: another thread may call one at once
            setattr(owner, attribute_name, attributes[attribute_name])
        owner.definers = (*cls.definers, *definition_classes)
        categories.pop(place, None)

    @classmethod
    def _complete_definitions(cls, owners: Iterable[type]) -> None:
        """Adds the promotion of operands to each op that one of these classes defines for tensors of one dtype."""
        if cls.promotion is None:
            return
        pending_names = {name for name, spec in OPS.items() if spec.facts.takes}
        for owner in owners:
            for name in pending_names & owner.__dict__.keys():
                definition = owner.__dict__[name]
                function = definition.__func__ if isinstance(definition, staticmethod) else definition
                # Other definitions promote their operands already, are methods, or are unsupported.
                if isinstance(definition, Direct) or (function is not definition and not hasattr(function, "__fast__")):
                    spec = OPS[name]
                    complete_op = cls.promotion.complete_op(function, spec.facts, spec.declared.__code__.co_argcount)
                    setattr(owner, name, staticmethod(complete_op))
            pending_names -= owner.__dict__.keys()

    @classmethod
    def missing_ops(cls) -> list[str]:
        """Returns the sorted names of the primitives that the class neither defines nor declares unsupported.

        It takes for granted that those whose definitions are not imported yet are defined.
        """
        complete()
        return sorted(
            name
            for name, spec in OPS.items()
            if not spec.composite and getattr(cls, name, None) is None and spec.category_path not in cls.categories
        )

    def defines(self, spec: OpSpec) -> bool:
        """Returns whether the backend has a definition of its own for an op; otherwise a composite's body runs.

        Args:
            spec: the declaration of the op, `OPS[name]`.
        """
        if self.categories and getattr(type(self), spec.name, None) is None:
            self._import_category(spec.category_path)
        return getattr(type(self), spec.name, None) is not None
