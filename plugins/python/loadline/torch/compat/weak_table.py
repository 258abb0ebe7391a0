"""Objects by number, held by weak references only.

An operator of a compiled graph can take numbers and no Python objects, so it finds the
object it works on here. The table keeps no object alive.
Safe to use from several threads. Tested by tests/plugins/python/torch_session_test.py.
"""
from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

_T = TypeVar("_T")


class WeakTable(Generic[_T]):
    def __init__(self) -> None:
        # Reentrant: a finalizer may run inside any of these methods.
        self._lock = threading.RLock()
        self._next = 1
        self._objects: weakref.WeakValueDictionary[int, _T] = (
            weakref.WeakValueDictionary())

    def reserve(self) -> int:
        """A new number, from 1 on."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        return number

    def add(self, value: _T) -> int:
        """Its number."""
        number = self.reserve()
        self.set(number, value)
        return number

    def set(self, number: int, value: _T) -> None:
        with self._lock:
            self._objects[number] = value

    def get(self, number: int) -> _T | None:
        """None: there never was one, or it is gone."""
        return self._objects.get(number)

    def __getitem__(self, number: int) -> _T:
        return self._objects[number]

    def remove(self, number: int) -> None:
        with self._lock:
            self._objects.pop(number, None)

    def items(self) -> list[tuple[int, _T]]:
        with self._lock:
            return list(self._objects.items())
