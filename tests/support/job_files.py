"""Job files for tests: the examples of the documentation, jobs of all kinds, and parts of files that make no sense."""
import re
from pathlib import Path

from hypothesis import strategies as st

from subak.live.jobfile import form, leaves, spec
from subak.live.jobfile.spec import Constraint, JobSpec, Metadata, Stage

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

# -- jobs --------------------------------------------------------------------------------------------------------------

AMOUNTS = st.integers(0, spec.AMOUNT_MAX)
SECONDS = st.integers(0, 10**9) | st.integers(0, 10**15).map(lambda millionths: millionths / 1e6)
LETTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
TEXT = st.text(LETTERS, max_size=20) | st.sampled_from([
    "null", "~", "no", "5.10", "022", "1e3", "<<", "*a", "&a", "!x", "- a", "a: b", "#", "", " ", "\n", "\u2028",
    "\ufeff", "{", "'", "a\x85  b", "a\u2028 b"])
NAMES = st.from_regex(rf"\A{leaves.NAME_FORM}\Z")
PRINTABLE = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=10)
LIMITS = st.none() | SECONDS.filter(bool).map(float)
CONSTRAINTS = st.builds(Constraint, PRINTABLE, st.sampled_from(["=", "!="]), PRINTABLE | st.just("")) | st.builds(
    Constraint, PRINTABLE, st.sampled_from(spec.OPERATORS), st.integers(-10**6, 10**6).map(str))
VARIABLES = st.text(LETTERS, min_size=1, max_size=9).filter(lambda name: "=" not in name)


@st.composite
def jobs(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True) | st.just(["main"]))
    stages = []
    for place, name in enumerate(names):
        gang = draw(st.booleans())
        stages.append(Stage(
            name, tuple(draw(st.lists(TEXT, min_size=1, max_size=3))), draw(st.integers(1, 250_000)), gang,
            tuple(draw(st.lists(st.sampled_from(names[:place]), unique=True))) if place else (),
            draw(st.integers(-2**31, 2**31 - 1)), draw(st.dictionaries(VARIABLES, TEXT, max_size=3)),
            "/" + draw(TEXT), {"cpu": draw(st.integers(1, 2**31 - 1)), **draw(st.dictionaries(
                st.sampled_from(["memory", "gpu", "disk"]), AMOUNTS))},
            tuple(draw(st.lists(CONSTRAINTS, max_size=3))), 0 if gang else draw(st.integers(0, 32_767)),
            float(draw(SECONDS)), draw(st.integers(0, 32_767)), draw(LIMITS), draw(LIMITS), float(draw(SECONDS)),
            draw(st.none() | NAMES), draw(st.integers(0, 0o777)), draw(st.booleans())))
    labels = st.dictionaries(NAMES, NAMES | st.just(""), max_size=3)
    metadata = Metadata(draw(NAMES), draw(labels), draw(st.dictionaries(NAMES, TEXT, max_size=3)))
    queue = draw(st.lists(PRINTABLE.filter(lambda part: "/" not in part), min_size=1, max_size=3))
    return JobSpec(metadata, "/".join(queue), tuple(stages))


# -- what makes no sense -----------------------------------------------------------------------------------------------

PIECES = ["metadata:", "name: x", "stages:", "- ", "command:", "[run]", "\n", "\n  ", "\n    ", "{", "}", "[", "]",
          ", ",
          "&a ", "*a", "!!str ", "? ", "<<: ", "'", '"', "\\", "|\n", ">\n", "#", "---", "...", "\t", "\0", "\ud800",
          "resources: ", "cpu: ", "4Gi", "1e9999999", "0" * 5000, "-", "~", "depends_on: ", "constraints: ", "env: ",
          "tasks: ", "true", "%YAML 1.2", "\x85", "\u2028", "\ufeff", "operator: ", ">=", "values: ", "name", ": "]
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(
    ["x", "a/b", "10s", "4Gi", "500m", "=", "subak/v1", "", "\0", "\x1b", "é" * 9]),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(
        ["name", "command", "stages", "env", "cpu", "memory", "attribute", "operator", "value", "values", "x"]), parts,
        max_size=4), max_leaves=8)
FIELDS = [name for kind in (form.JobForm, form.StageForm, form.ConstraintForm)
          for name in kind.__struct_encode_fields__]
