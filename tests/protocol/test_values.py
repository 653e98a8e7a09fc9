"""A class that is completed at first use is the class that attrs would have made (decision 29)."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
from cattrs import Converter

from steadyhand.domain.records.record import ModelName
from steadyhand_values import define, frozen, pattern

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'protocol'}"}
every_class_s_max = 110

# Compares every class of the server and the protocol, before its first use, with the class that attrs makes.
EVERY_CLASS = """
import importlib, pkgutil, types
import attrs, steadyhand, steadyhand_protocol

for package in (steadyhand, steadyhand_protocol):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)

def subclasses(cls):
    for below in type.__subclasses__(cls):
        yield below
        yield from subclasses(below)

def code(member):
    code = getattr(member, "__code__", None)
    return (code.co_code, code.co_consts, code.co_names, code.co_varnames) if code else member

count = 0
for cls in list(dict.fromkeys(subclasses(object))):
    deferred = cls.__dict__.get("__attrs_attrs__")
    if type(deferred).__name__ != "_Deferred":
        continue
    count += 1
    for member in deferred.original.__dict__.values():
        for function in (member, getattr(member, "fget", None), getattr(member, "__func__", None)):
            assert "__class__" not in getattr(getattr(function, "__code__", None), "co_freevars", ()), (cls, member)
    made = deferred.make(**deferred.options)(deferred.original)
    slots = set(cls.__slots__)
    fields = attrs.fields(cls)
    assert [repr(field) for field in fields] == [repr(field) for field in attrs.fields(made)], cls
    assert slots == set(made.__slots__), (cls, slots, made.__slots__)
    assert cls.__dict__.keys() == made.__dict__.keys(), (cls, cls.__dict__.keys() ^ made.__dict__.keys())
    assert cls.__mro__[1:] == made.__mro__[1:] and cls.__qualname__ == made.__qualname__
    for name, member in made.__dict__.items():
        if isinstance(member, types.FunctionType):
            assert code(cls.__dict__[name]) == code(member), (cls, name)
    assert cls.__match_args__ == made.__match_args__ and (cls.__hash__ is None) == (made.__hash__ is None), cls
print(count)
"""


def test_every_deferred_class_equals_the_class_of_attrs() -> None:
    """Fields, slots, members and compiled methods of each class are those that attrs makes; none needs `__class__`."""
    done = subprocess.run(
        [sys.executable, "-c", EVERY_CLASS],
        env={**os.environ, **PATHS}, capture_output=True, text=True, timeout=every_class_s_max, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 250


@frozen
class Spot:
    """A class like those of the server."""

    x: int
    y: int = 2
    names: tuple[str, ...] = ()
    unit: ClassVar[str] = "mm"

    @property
    def sum(self) -> int:
        return self.x + self.y


@frozen(kw_only=True)
class Named(Spot):
    """A subclass."""

    name: str
    more: dict[str, int] = attrs.field(factory=dict, eq=False)


@define
class Box:
    """A mutable class that reads its own members when a value is made."""

    spot: Spot
    seen: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.seen.append(self.spot.sum)


@define(eq=False)
class Unequal:
    """A class whose values are equal only to themselves."""

    x: int = 1


def test_value_has_members_equality_hash_and_text() -> None:
    """Members, defaults, equality, hash and text are right, and a frozen value cannot be changed."""
    assert (Spot(1).x, Spot(1).y, Spot(1).sum, Spot.unit) == (1, 2, 3, "mm")
    assert Spot(1) == Spot(1, 2) != Spot(1, 3)
    assert len({Spot(1), Spot(1), Spot(2)}) == 2
    assert repr(Spot(1)) == "Spot(x=1, y=2, names=())"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Spot(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Box(Spot(1)).other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Spot()  # type: ignore[call-arg]


def test_subclass_factories_and_post_init_work() -> None:
    """A subclass has the members of both classes, factories make new values, and `__attrs_post_init__` runs."""
    named = Named(x=1, name="n")
    assert (named.sum, named.more, Named(x=1, name="n").more is named.more) == (3, {}, False)
    assert named == Named(x=1, name="n", more={"a": 1}) != Spot(1)
    assert Box(Spot(1)).seen == [3]
    assert Unequal() != Unequal()
    assert [field.name for field in attrs.fields(Named)] == ["x", "y", "names", "name", "more"]


def test_value_works_with_match_evolve_copy_and_cattrs() -> None:
    """`match`, `evolve`, `asdict`, copies, weak references and cattrs accept the value."""
    match Spot(1):
        case Spot(x, y):
            assert (x, y) == (1, 2)
        case _:
            raise AssertionError
    assert attrs.evolve(Spot(1), y=5) == Spot(1, 5)
    assert attrs.asdict(Spot(1)) == {"x": 1, "y": 2, "names": ()}
    assert copy.deepcopy(Spot(1)) == pickle.loads(pickle.dumps(Spot(1))) == Spot(1)
    spot = Spot(1)
    assert weakref.ref(spot)() is spot
    assert Converter().structure({"x": "1"}, Spot) == Spot(1)
    assert attrs.has(Spot)


def test_fields_read_before_the_first_value_complete_the_class() -> None:
    """The fields can be read before the first value is made, and the class is complete then."""

    @frozen
    class Late:
        x: int

    has_fields = attrs.has(Late)
    assert has_fields
    assert Late.__init__.__name__ == "__init__"
    assert Late(1) == Late(1)


def test_method_that_is_used_first_is_complete() -> None:
    """Equality, hash and text each work when used first. A method that attrs leaves out is absent."""

    def make() -> type[Spot]:
        @frozen
        class Waiting(Spot):
            z: int = 0

        return Waiting

    cls = make()
    assert cls(1) == cls(1)
    cls = make()
    assert cls(1) != cls(2)
    cls = make()
    assert hash(cls(1)) == hash(cls(1))
    assert repr(make()(1)).endswith("Waiting(x=1, y=2, names=(), z=0)")
    assert make()(1).__eq__(5) is NotImplemented
    assert cls(1) != Spot(1)
    with pytest.raises(TypeError, match="unhashable type"):
        hash(Box(Spot(1)))
    assert len({Unequal(), Unequal()}) == 2


def test_first_values_of_many_threads_are_complete() -> None:
    """Threads that make the first value at the same time each get a value of a complete class."""
    for _ in range(50):

        @frozen
        class Raced:
            x: int
            y: int = 2

        begin = threading.Barrier(4)
        made: list[bool] = []

        def make(cls: type[Raced] = Raced, begin: threading.Barrier = begin, made: list[bool] = made) -> None:
            begin.wait()
            made.append(cls(1) == cls(1) and hash(cls(1)) == hash(cls(1, 2)))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [True] * 4


def test_pattern_is_compiled_at_first_use() -> None:
    """It matches as `re` does, and is not compiled before its first use."""
    found = pattern("(a+)b")
    assert "search" not in vars(found)
    match = found.fullmatch("aab")
    assert match is not None
    assert match[1] == "aa"
    assert found.sub("-", "aab b") == "- b"
    assert found.search("b") is None
    assert vars(found)["search"]("xab")


def test_value_unpickled_in_another_process_is_the_first_of_its_class() -> None:
    """A class completes itself when its first value comes from a pickle; the forks of the tests send values so."""
    value = ModelName("practice", "small")
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(value).hex()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (repr(value), "")
