"""Turns node selectors, required node affinity and taints into constraints.

A label is an attribute, its value the attribute's; the empty value, which stands for "absent" in a constraint, is
written as two quotes. A requirement that is no predicate on one attribute (one of several values, one of several terms,
Gt, Lt) becomes an attribute of its own, which the nodes that meet it have: `zone in a|b` = yes.
"""
from collections.abc import Iterable, Mapping

from subak.errors import InputError
from subak.workload.readers.kubernetes.objects import PodSpec, Requirement, Taint, Term, Toleration

Predicate = tuple[str, str, str]  # attribute, operator, value
EMPTY_VALUE, YES = '""', "yes"
NODE_NAME = "metadata.name"
ORDERS = ("Gt", "Lt")  # of whole numbers; a constraint would take for 0 what is none
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", *ORDERS)
KEEPING_OUT = ("NoSchedule", "NoExecute")


class Places:
    """The attributes that pods make necessary: terms by the name of the attribute that says which nodes meet one."""

    def __init__(self, taints: Iterable[Taint]) -> None:
        self.taints = sorted({each for each in taints if each.effect in KEEPING_OUT})
        self.derived: dict[str, tuple[Term, ...]] = {}

    def predicates(self, spec: PodSpec, fixed: bool, where: str) -> tuple[Predicate, ...]:
        """Return what must hold of a pod's node, which is *fixed* for pods that a node runs by itself.

        Raises InputError, beginning with *where*, for a requirement that is none.
        """
        found = [(name, "=", value or EMPTY_VALUE) for name, value in (spec.node_selector or {}).items()]
        if fixed and spec.node_name:
            found.append((NODE_NAME, "=", spec.node_name))
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        if affinity is not None and affinity.required is not None:
            found += self._of_terms(affinity.required.node_selector_terms, where)
        tolerations = spec.tolerations or ()
        found += [(taint_name(taint), "=", "") for taint in self.taints
                  if not any(_tolerates(each, taint) for each in tolerations)]
        return tuple(dict.fromkeys(found))

    def _of_terms(self, terms: tuple[Term, ...], where: str) -> list[Predicate]:
        for requirement in (each for term in terms for each in term.requirements):
            _check(requirement, where)
        if len(terms) == 1 and terms[0].requirements:
            return [predicate for each in terms[0].requirements for predicate in self._of_requirement(each)]
        return [self._derived(terms)]

    def _of_requirement(self, requirement: Requirement) -> list[Predicate]:
        key, values = requirement.key, requirement.values or ()
        if requirement.operator == "Exists":
            return [(key, "!=", "")]
        if requirement.operator == "DoesNotExist":
            return [(key, "=", "")]
        if requirement.operator == "NotIn":
            return [(key, "!=", value or EMPTY_VALUE) for value in values]
        if requirement.operator == "In" and len(values) == 1:
            return [(key, "=", values[0] or EMPTY_VALUE)]
        return [self._derived((Term(match_expressions=(requirement,)),))]

    def _derived(self, terms: tuple[Term, ...]) -> Predicate:
        name = " or ".join(" and ".join(map(_words, term.requirements)) or "nothing" for term in terms) or "no node"
        self.derived[name] = terms
        return (name, "=", YES)

    def attributes(self, labels: Mapping[str, str], taints: Iterable[Taint]) -> dict[str, str]:
        """Return the attributes of a node: its labels, taints, and which of the derived terms it meets."""
        found = {name: value or EMPTY_VALUE for name, value in labels.items()}
        found |= {taint_name(taint): YES for taint in taints if taint.effect in KEEPING_OUT}
        met = (name for name, terms in self.derived.items() if any(_meets(labels, term) for term in terms))
        return found | dict.fromkeys(met, YES)


def taint_name(taint: Taint) -> str:
    """Return the attribute that says of a machine that it has a taint."""
    return f"taint {taint.key}={taint.value}:{taint.effect}"


def _check(requirement: Requirement, where: str) -> None:
    operator, values = requirement.operator, requirement.values or ()
    if operator not in OPERATORS:
        raise InputError(f"{where}: operator must be one of {', '.join(OPERATORS)}, not {operator[:60]!r}")
    if not requirement.key:
        raise InputError(f"{where}: a requirement needs a key")
    if operator in ORDERS and (len(values) != 1 or _whole(values[0]) is None):
        raise InputError(f"{where}: {operator} needs one whole number as its value, has {str(list(values))[:60]}")
    if operator in ("In", "NotIn") and not values:
        raise InputError(f"{where}: {operator} needs values")


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.key == taint.key and toleration.value == taint.value)


def _words(requirement: Requirement) -> str:
    values = "|".join(requirement.values or ())
    return f"{requirement.key} {requirement.operator} {values}".replace(" In ", " in ").strip()


def _meets(labels: Mapping[str, str], term: Term) -> bool:
    return bool(term.requirements) and all(_holds(labels, each) for each in term.requirements)


def _holds(labels: Mapping[str, str], requirement: Requirement) -> bool:
    value, values = labels.get(requirement.key), requirement.values or ()
    if requirement.operator in ORDERS:
        number, bound = _whole(value or ""), _whole(values[0])
        if number is None or bound is None:
            return False
        return number > bound if requirement.operator == "Gt" else number < bound
    return {"In": value in values, "NotIn": value not in values, "Exists": value is not None,
            "DoesNotExist": value is None}[requirement.operator]


def _whole(text: str) -> int | None:
    return int(text) if text.lstrip("+-").isdecimal() and text.isascii() and len(text) <= 19 else None
