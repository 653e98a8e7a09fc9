"""`frozen` and `define` of attrs, and `pattern` of `re`, which do their work at first use.

attrs generates and compiles the methods of a class when the class is defined. Steadyhand defines about 400 value
classes and a run uses some of them; compiling all of them took most of the time of a start. Here a class gets its slots
at once. It gets its methods when its first value is made or its fields are read. attrs makes the methods, so from then
on the class is the one that attrs would have made. `pattern` compiles a regular expression at its first use.

This package imports no other package of the project, and all of them may import it (decision 29). A class that calls
`super()` without arguments, or reads `__class__`, must use attrs itself, because two classes would share its methods.
"""

from __future__ import annotations

import re

__all__ = ["define", "frozen", "pattern"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as pattern

    from attrs import define, frozen
else:
    import inspect
    from _thread import RLock

    import attrs

    def frozen(cls=None, **options):
        """`attrs.frozen`, deferred. It takes the options of attrs except `slots`: the class always has slots."""
        return _defer(attrs.frozen, cls, options)

    def define(cls=None, **options):
        """`attrs.define`, deferred; see `frozen`."""
        return _defer(attrs.define, cls, options)

    def _defer(make, cls, options):
        return (lambda cls: _slotted(make, cls, options)) if cls is None else _slotted(make, cls, options)

    def _slotted(make, original, options):
        """Return the final class, without the methods of attrs. `original`: the class as it is in the source."""
        names = tuple(name for name, kind in inspect.get_annotations(original).items() if "ClassVar" not in str(kind))
        members = {name: value for name, value in original.__dict__.items() if name not in names and name not in _OWN}
        slots = {name for base in original.__mro__[1:] for name in getattr(base, "__slots__", ())}
        own = tuple(name for name in names if name not in slots)
        members["__slots__"] = (
            own if any("__weakref__" in base.__dict__ for base in original.__mro__[1:]) else (*own, "__weakref__")
        )
        members["__qualname__"] = original.__qualname__
        members["__init__"] = _first_init
        members.setdefault("__setstate__", _first_setstate)
        members["__attrs_attrs__"] = _Deferred(make, original, options)
        return type(original)(original.__name__, original.__bases__, members)

    _OWN = ("__dict__", "__weakref__")

    def _first_init(self, *arguments, **options):
        """`__init__` until the first value is made: completes the class and calls its `__init__`."""
        attrs.fields(type(self))
        self.__init__(*arguments, **options)

    def _first_setstate(self, state):
        """`__setstate__` until then: a value that another process pickled may be the first one here."""
        attrs.fields(type(self))
        self.__setstate__(state)

    class _Deferred:
        """The fields of a class until something reads them; then attrs makes them and all methods."""

        def __init__(self, make, original, options):
            self.make = make
            self.original = original
            self.options = options

        def __get__(self, value, cls):
            with _completing:
                for cls_or_base in cls.__mro__:
                    if cls_or_base.__dict__.get("__attrs_attrs__") is self:
                        self._complete(cls_or_base)
            return cls.__attrs_attrs__

        def _complete(self, cls):
            made = self.make(**self.options)(self.original).__dict__
            for name in made.keys() - self.original.__dict__.keys() - _KEPT - {*made["__slots__"]}:
                setattr(cls, name, made[name])
            # Last, and in this order: another thread may make a value meanwhile and must find a complete class.
            cls.__init__ = made["__init__"]
            cls.__attrs_attrs__ = made["__attrs_attrs__"]

    _KEPT = {"__slots__", "__weakref__", "__dict__", "__attrs_attrs__", "__init__"}
    _completing = RLock()

    class pattern:
        """A regular expression that is compiled at its first use. It takes the arguments of `re.compile`."""

        def __init__(self, *arguments):
            self._arguments = arguments

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = re.compile(*self._arguments)
            for method in _METHODS:
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)

    _METHODS = ("findall", "finditer", "flags", "fullmatch", "match", "pattern", "search", "split", "sub", "subn")
