"""The command of sacct that pages and help print: the same everywhere, of fields that the reader reads."""
import re
from pathlib import Path

from subak.workload.readers.slurm import sacct

ROOT = Path(__file__).parents[2]
FIELDS = re.compile(r"(?:fields|--format)=(JobID,[A-Za-z,]+)")
PLACES = ("README.md", "docs/traces.md", "docs/tutorial.md", "src/subak/workload/readers/slurm/sacct.py",
          "src/subak/cli/usage/convert.py")


def test_every_place_names_the_same_fields():
    found = {place: FIELDS.findall((ROOT / place).read_text()) for place in PLACES}
    assert {len(fields) for fields in found.values()} == {1}, found
    assert len({fields[0] for fields in found.values()}) == 1, found
    for place in PLACES:
        assert "-aXP --noconvert" in (ROOT / place).read_text()
        assert "SLURM_TIME_FORMAT=%s" in (ROOT / place).read_text()


def test_the_reader_reads_each_of_them():
    fields = FIELDS.findall((ROOT / "README.md").read_text())[0].split(",")
    assert set(fields) <= {*sacct.NEEDED, *sacct.OPTIONAL}
    assert {*sacct.NEEDED, "Timelimit", "Eligible", "Elapsed", "AllocTRES"} <= set(fields)
