"""The command line called in this process: one of its own takes a second to load what is loaded here already."""
import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import pytest

from subak.cli.main import main


def subak(*arguments: object, cwd: Path | None = None,
          environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What `subak` with these arguments does, in a folder, and with these variables beside those that are there."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    words = ["subak", *map(str, arguments)]
    with (mock.patch.object(sys, "argv", words), mock.patch.dict(os.environ, environment or {}),
          contextlib.chdir(cwd or Path()), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
          pytest.raises(SystemExit) as ended):
        main()
    signal.signal(signal.SIGTERM, before)
    return subprocess.CompletedProcess(words, int(ended.value.code or 0), out.getvalue(), err.getvalue())
