"""Public functions say which types they take and return: none says Any, which nothing is checked against."""
import ast
from pathlib import Path

import subak

ROOT = Path(subak.__file__).parent
MAY = {  # with the reason
    "kernels/arrays.py with_arrays": "returns a state of the type that it was given, which is built by its members",
    "kernels/arrays.py in_one_block": "likewise",
    "kernels/files.py read": "what was pickled",
    "kernels/kernel.py function_type": "a signature of Numba, whose class is none of its documented names",
    "kernels/numba_internals/compiler.py Compiler.passes": "Numba makes it from arguments that no class describes",
    "kernels/numba_internals/indices.py without_wrapping": "a context of Numba with a table that it does not declare",
    "live/role/base.py Role.on_effect": "a row of NumPy in masters, a dict in workers",
    "live/role/base.py Role.message": "bytes in masters, a dict in workers",
    "live/role/base.py Role.taken": "likewise",
    "live/role/base.py Role.load": "likewise",
    "live/process/__main__.py made": "one of three processes, whose modules load only where they run",
    "records.py Numbers.values": "whole numbers and others, as the fields are declared",
    "simulator/exhaustive/roles/canonical.py check_named": "a state of any role and what its fields are called",
    "simulator/exhaustive/roles/canonical.py mark_kept": "likewise",
    "simulator/exhaustive/roles/canonical.py knows_ended": "the state of any role",
    "simulator/federated/engine.py build_services": "what the compiled loop takes, of types that Numba makes",
    "simulator/simulate.py simulate": "fields of Terms, by name",
}


def says_any(annotation):
    """Whether Any is in an annotation, as a name, within another type, or in one that is quoted."""
    if annotation is None:
        return False
    return any("Any" in (getattr(node, "id", ""), getattr(node, "attr", ""))
               or (isinstance(node, ast.Constant) and isinstance(node.value, str) and says_any(parsed(node.value)))
               for node in ast.walk(annotation))


def parsed(text):
    """Return a quoted annotation; None for another text, such as the word of a Literal."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def found(body, within=""):
    """Yield the public functions of a module that say Any, and the public methods of its public classes."""
    for node in body:
        if getattr(node, "name", "_").startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from found(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            asked = node.args
            several = [*asked.posonlyargs, *asked.args, *asked.kwonlyargs, asked.vararg, asked.kwarg]
            if says_any(node.returns) or any(says_any(each.annotation) for each in several if each is not None):
                yield f"{within}{node.name}"


def test_public_functions_do_not_say_any():
    said = {f"{path.relative_to(ROOT)} {name}" for path in ROOT.rglob("*.py")
            for name in found(ast.parse(path.read_text()).body)}
    assert sorted(said - MAY.keys()) == [], "give these a type: a Protocol, a record, a generic, object; or Json"
    assert sorted(MAY.keys() - said) == [], "these may say Any, and do not"


def test_json_is_named_in_one_place():
    names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")
             for node in ast.parse(path.read_text()).body
             if isinstance(node, ast.Assign | ast.AnnAssign) and getattr(node.value, "id", "") == "Any"]
    assert names == ["json_type.py"]


def test_any_is_found_wherever_it_stands():
    source = """
def plain(one: Any): ...
def inner(one: dict[str, list[Any]]): ...
def result() -> typing.Any: ...
def quoted(one: "tuple[Any, ...]"): ...
async def more(*ones: Any): ...
def named(**ones: Any): ...
def only(*, one: Any | None = None): ...
class Public:
    def method(self) -> Any: ...
    def _hidden(self) -> Any: ...
class _Hidden:
    def method(self) -> Any: ...
def _hidden() -> Any: ...
def free(one: object, two: Literal["Any word", "Anything"], three: Anything) -> Json:
    def within(one: Any): ...
"""
    assert list(found(ast.parse(source).body)) == [
        "plain", "inner", "result", "quoted", "more", "named", "only", "Public.method"]
