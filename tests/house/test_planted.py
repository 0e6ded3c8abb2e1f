"""The list of planted defects names what is there; `make planted` plants them."""
import pytest

from checkout import file_of
from planted_defects import DEFECTS, ROOT, planted


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_each_defect_can_be_planted_and_its_test_is_there(defect):
    plain = (ROOT / defect.file).read_text()
    compile(planted(plain, defect), defect.file, "exec")
    file, name = defect.test.split("::")
    assert f"def {name}(" in (ROOT / file_of(file)).read_text()


def test_a_defect_whose_place_has_changed_is_named():
    with pytest.raises(SystemExit, match="0 times, not once"):
        planted("", DEFECTS[0])
