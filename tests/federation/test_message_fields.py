"""Every message says what its kind says, and nothing else: the table of kinds and fields is what the handlers do."""
import ast
import inspect
import textwrap

import numpy as np
import pytest

from subak.federation.megha import roles
from subak.federation.megha.roles import to_global_master, to_local_master, to_submitter
from subak.federation.megha.transitions import TRANSITIONS
from subak.federation.megha.worker_role import to_worker
from subak.federation.messages import (
    ALWAYS,
    EXECUTOR,
    FIELDS,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    SUBMITTER,
    WORKER,
)
from subak.federation.settings import Federation
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import build, next_event, random_case
from test_torture import OF_THE_OTHERS

UNSAID = dict.fromkeys(("task", "machine", "row", "shape", "queue", "owner", "victims", "handle"), NOBODY)  # else 0


def test_fields_of_the_table_are_fields_of_messages():
    assert set().union(*FIELDS) == set(MESSAGE.names)
    assert all(len(fields) == len(set(fields)) for fields in FIELDS)


def test_what_megha_handles_has_a_row_of_what_it_does():
    handled = {name for name, role in zip(KINDS, HANDLER, strict=True) if hasattr(roles, name) and role != EXECUTOR}
    assert len(handled) > 30
    assert handled <= {row.message for row in TRANSITIONS}


@pytest.mark.parametrize(("architecture", "seeds"), [
    ("megha", 10), ("sparrow", 2), ("hawk", 2), ("eagle", 2), ("dodoor", 2), ("pigeon", 2)])
def test_a_message_says_what_its_kind_says(architecture, seeds):
    said = set().union(*(sent(architecture, seed) for seed in range(seeds)))
    assert not {(kind, field) for kind, field in said if field not in FIELDS[KINDS.index(kind)]}
    assert len({kind for kind, _ in said}) > 5
    if architecture == "megha":
        kinds = {kind for kind, _ in said} - {"SUBMIT"}  # others say its batch and count
        named = {(kind, field) for kind in kinds for field in FIELDS[KINDS.index(kind)] if field not in ALWAYS}
        assert len(named & said) > 0.85 * len(named), "fields that the table names for nothing"


def sent(architecture, seed):
    """Return (kind, field) of what was posted in a run, under Megha with faults."""
    case = random_case(seed)
    workload, fleet = build(case)
    mends = ARCHITECTURES[architecture].mends
    settings, plan = (case.settings, case.plan) if mends else (Federation(global_masters=2, cutoff=4.0), None)
    opened = open_federated(workload, fleet, ARCHITECTURES[architecture], settings, seed, 1e6, 60.0, plan,
                            compiled=False)
    said = set()
    for _ in range(3_000):
        why, _ = next_event(opened)
        for row in opened.out.row[: int(np.argmax(opened.out.row["kind"] == NOBODY))]:
            said |= {(KINDS[row["kind"]], name) for name in MESSAGE.names
                     if name not in ALWAYS and row[name] != UNSAID.get(name, 0)}
        if why == LOOP_DONE:
            break
    return said


def branches(function):
    """Return the names with which a dispatch compares the kind of a message."""
    (made,) = ast.parse(textwrap.dedent(inspect.getsource(getattr(function, "py_func", function)))).body
    return {name.id for node in ast.walk(made) if isinstance(node, ast.Compare) and ast.unparse(node.left) == "kind"
            for said in node.comparators for name in ast.walk(said) if isinstance(name, ast.Name)}


@pytest.mark.parametrize(("role", "dispatch"), [
    (SUBMITTER, to_submitter), (GLOBAL_MASTER, to_global_master), (LOCAL_MASTER, to_local_master),
    (WORKER, to_worker)], ids=lambda each: getattr(each, "__name__", ""))
def test_every_kind_has_its_branch_in_the_dispatch_of_its_role(role, dispatch):
    handled = {kind for kind, handler in zip(KINDS, HANDLER, strict=True) if handler == role}
    assert handled - OF_THE_OTHERS - branches(dispatch) == set()
