"""Calls between kernels that are compiled apart: by an address, with the address of what they work on."""
from typing import NamedTuple

import numpy as np
from numba import types

from subak.federation.serving import Service, entered, signature_of
from subak.kernels.kernel import kernel_of
from subak.kernels.state import addressed
from subak.marks import call


class Callee(NamedTuple):
    total: np.ndarray  # float64[1]


class Caller(NamedTuple):
    services: np.ndarray  # int64[2]
    tables: np.ndarray  # int64[2]


def add(tables: Callee, now: float, count: int) -> int:
    tables.total[0] += now
    return count + 1


def take_off(tables: Callee, now: float, count: int) -> int:
    tables.total[0] -= now
    return count - 1


def both(tables: Caller, now: float, count: int) -> int:
    found = call(tables.services, 0, tables.tables[0], 2.0 * now, count)
    return 100 * found + call(tables.services, 1, tables.tables[1], now, count)


def test_a_kernel_calls_others_by_their_addresses():
    callees = Callee(np.zeros(1)), Callee(np.zeros(1))
    held = [addressed(each) for each in callees]
    services = [Service(kernel_of(signature_of(each), function))
                for each, function in zip(callees, (add, take_off), strict=True)]
    caller = Caller(np.array([each.address for each in services]), np.array([each.address for each in held]))
    words = addressed(caller)
    enter = entered(Service(kernel_of(signature_of(caller), both)))
    assert enter(words.address, 1.5, 7) == 806
    assert [each.total[0] for each in callees] == [3.0, -1.5]


def test_in_plain_python_they_are_called_with_their_tables():
    callees = Callee(np.zeros(1)), Callee(np.zeros(1))
    functions = tuple(lambda _address, now, count, each=each, function=function: function(each, now, count)
                      for each, function in zip(callees, (add, take_off), strict=True))
    assert both(Caller(functions, np.zeros(2, np.int64)), 1.5, 7) == 806
    assert [each.total[0] for each in callees] == [3.0, -1.5]


def test_a_callees_signature_is_that_of_all_that_serve():
    kernel = kernel_of(signature_of(Callee(np.zeros(1))), add)
    (signature,) = kernel.overloads
    assert signature[1:] == (types.float64, types.int64)
