"""Options of the tests."""


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden/*.txt again from what happens")
