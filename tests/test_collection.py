"""When Python looks for garbage, and that all is as it was afterwards."""
import gc

import pytest

from subak.collection import SELDOM, seldom_collection, without_collection


@pytest.fixture(params=[True, False], ids=["looks", "does not look"])
def looks(request):
    """Whether garbage is looked for before, which is as it was at the end."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(("meanwhile", "expected"), [(without_collection, False), (seldom_collection, True)])
def test_it_is_as_it_was_afterwards_also_where_something_is_raised(looks, meanwhile, expected):
    usual = gc.get_threshold()
    with pytest.raises(KeyError), meanwhile():
        assert gc.isenabled() is expected
        assert gc.get_threshold() == (SELDOM if expected else usual)
        raise KeyError
    assert gc.isenabled() is looks
    assert gc.get_threshold() == usual


def test_garbage_goes_while_a_kernel_compiles():
    class Node:
        """An object that knows itself."""

        def __init__(self):
            self.itself = self

    made = 50 * SELDOM[0]
    with seldom_collection():
        for _ in range(made):
            Node()
        left = sum(type(each) is Node for each in gc.get_objects())
    assert left < made / 10
