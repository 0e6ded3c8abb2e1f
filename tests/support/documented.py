"""The worked examples of the docstring of subak.policy, as a file that can be named on the command line."""
import inspect
from pathlib import Path

import subak.policy


def example_file(folder):
    """Write the examples as they stand into *folder*; the Python code is indented, and so is one command."""
    lines = inspect.getdoc(subak.policy).splitlines()
    code = [line[4:] if line.startswith("    ") else "" for line in lines]
    file = Path(folder) / "examples.py"
    file.write_text("\n".join(line for line in code if not line.startswith("subak ")))
    return file
