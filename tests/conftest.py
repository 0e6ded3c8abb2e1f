"""Options and fixtures of the tests."""
import pytest
from hypothesis import Phase, settings

from subak.cli.main import main

# The same cases each time, and no smaller one sought for a failure: for tests/mutants.py.
settings.register_profile("mutants", derandomize=True, database=None, deadline=None,
                          phases=[Phase.explicit, Phase.generate])


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden/*.txt again from what happens")


@pytest.fixture
def run(monkeypatch, capsys, request):
    """Run the command line, COLUMNS of the test's module wide; return its exit code, output and standard error."""
    def call(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["subak", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(getattr(request.module, "COLUMNS", 160)))
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err
    return call
