"""The cache of compiled kernels: what its files are named by, whom it trusts, and what it survives."""
import fcntl
import hashlib
import importlib
import logging
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import pytest
from llvmlite import binding
from numba import njit, typeof, types
from numba.core.funcdesc import default_mangler
from numba.core.registry import cpu_target

from subak import marks
from subak.experiment import parallel, workers
from subak.experiment.scenario import Scenario
from subak.federation.messages import GLOBAL_MASTER
from subak.kernels import files as kernel_files
from subak.kernels.files import KEPT_DAYS, kernel_folder, remove_unused
from subak.kernels.kernel import is_compiled, kernel, kernel_of
from subak.kernels.numba_internals import cache as kernel_cache
from subak.kernels.numba_internals import key as kernel_key
from subak.kernels.numba_internals.key import reached_from, signature_key, source_key
from subak.marks import inlined, noinline
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.central import delay as delay_run
from subak.simulator.central import fair as fair_run
from subak.simulator.central import loop as central
from subak.simulator.central import lotes as lotes_run
from subak.simulator.central import planned as planned_run
from subak.simulator.central import rigid as rigid_run
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.engine import run_federated

NUMBERS = types.int64[::1]
NUMBER_OF = types.int64(NUMBERS)
DAY_S = 86_400


def first(numbers):
    return numbers[0]


def second(numbers):
    return numbers[1]


def called(function=first):
    """Compile *function* as a new process would, and call it; return its answer and whether it was loaded."""
    compiled = kernel_of(NUMBER_OF, function)
    return int(compiled(np.array([7, 8]))), sum(compiled.stats.cache_hits.values()) == 1


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user's cache folder and a temporary folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    forget()
    yield tmp_path / "home" / "subak"
    forget()


def forget():
    kernel_folder.cache_clear()
    kernel_files.say.cache_clear()


def only_file(folder):
    (path,) = folder.glob("kernels/*.kernel")
    return path


def lines(caplog):
    """Return what was said, and forget it."""
    said = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return said


# -- keys --------------------------------------------------------------------------------------------------------------

MINI = {
    "__init__.py": "from mini.middle import LIMIT as BOUND\n",
    "deep.py": "LIMIT = 7\nUNUSED = 1\nSCALE = 2\nNAMES = frozenset({'a', 'b', 'c'})\n",
    "middle.py": "from mini.deep import LIMIT\nfrom subak.marks import inlined\n\n"
                 "@inlined\ndef bounded(x, least=0):\n    return max(min(x, LIMIT), least)\n",
    "engine.py": "import mini\nfrom mini import BOUND, deep\nfrom mini.middle import bounded\n"
                 "def through_a_call(x):\n    return bounded(x)\n"
                 "def through_a_package(x):\n    return x + BOUND\n"
                 "def through_a_module(x):\n    return x * deep.SCALE\n"
                 "def through_a_set(x):\n    return x in deep.NAMES\n"
                 "def alone(x):\n    '''Say one.'''\n    return x + 1\n",
}
ALL = {"through_a_call", "through_a_package", "through_a_module", "through_a_set", "alone"}


def write_mini(folder):
    (folder / "mini").mkdir()
    for name, text in MINI.items():
        (folder / "mini" / name).write_text(text)


def keys_of(folder, monkeypatch):
    """Import the package anew and return the key of each of its kernels."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "mini"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    engine = importlib.import_module("mini.engine")
    return {name: source_key(getattr(engine, name)) for name in sorted(ALL)}


@pytest.mark.parametrize(("file", "old", "new", "changed"), [
    ("deep.py", "LIMIT = 7", "LIMIT = 8", {"through_a_call", "through_a_package"}),
    ("deep.py", "LIMIT = 7", "LIMIT = 7.0", {"through_a_call", "through_a_package"}),
    ("deep.py", "SCALE = 2", "SCALE = 3", {"through_a_module"}),
    ("deep.py", "UNUSED = 1", "UNUSED = 2", set()),
    ("deep.py", "LIMIT = 7", "# a comment\n\nLIMIT = 3 + 4", set()),
    ("middle.py", "min(x, LIMIT)", "min(LIMIT, x)", {"through_a_call"}),
    ("middle.py", "least=0", "least=1", {"through_a_call"}),
    ("middle.py", "import inlined\n\n@inlined", "import noinline\n\n@noinline", {"through_a_call"}),
    ("__init__.py", "LIMIT as BOUND", "bounded\nBOUND = 9", {"through_a_package"}),
    ("engine.py", "x + 1", "x + 2", {"alone"}),
    ("engine.py", "Say one.", "Say another.", set()),
    ("engine.py", "import mini\n", "import mini\nimport mini.deep\nROWS = 5\n", set()),
])
def test_an_edit_changes_the_keys_of_the_kernels_that_reach_it(tmp_path, monkeypatch, file, old, new, changed):
    write_mini(tmp_path)
    before = keys_of(tmp_path, monkeypatch)
    path = tmp_path / "mini" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = keys_of(tmp_path, monkeypatch)
    assert {name for name in ALL if before[name] != after[name]} == changed


def test_the_names_of_a_tuple_s_fields_are_in_the_key():
    pairs = [NamedTuple("Pair", [(one, int), (other, int)]) for one, other in ("ab", "ba", "ab")]
    target = cpu_target.target_context.codegen()
    keys = [signature_key((typeof(pair(1, 2)),), target) for pair in pairs]
    assert str(typeof(pairs[0](1, 2))) == str(typeof(pairs[1](1, 2)))  # Numba's name does not tell
    assert keys[0] == keys[2] != keys[1]


def test_keys_are_the_same_in_every_process(tmp_path, monkeypatch):
    write_mini(tmp_path)
    script = ("from mini import engine\nfrom subak.kernels.numba_internals.key import source_key\n"
              f"print({{name: source_key(getattr(engine, name)) for name in {sorted(ALL)}}})")
    found = [subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed},
                            check=True, capture_output=True, text=True).stdout.strip() for seed in ("1", "2")]
    assert found == [str(keys_of(tmp_path, monkeypatch))] * 2


def engines():
    found = [central.run_ordered, central.run_hooks, fair_run.run_fair, planned_run.run_planned, lotes_run.run_lotes,
             delay_run.run_delay]
    served = dict.fromkeys(serve for each in ARCHITECTURES.values() for serve in (*each.serve, *(each.idle or ())[:1]))
    return [*found, rigid_run.run_rigid, run_federated, *served]


def test_every_engine_has_a_key_and_reaches_only_what_is_compiled():
    assert {engine.__name__ for engine in engines()} == {name for each in SCHEDULERS.values() for name in each.kernels}
    for engine in engines():
        plain = {each for each in reached_from(engine) if not hasattr(each, marks.COMPILED_AS)}
        assert plain - {engine, marks.call} <= {each for each in plain if is_kernel(each)}


def is_kernel(function):
    return hasattr(getattr(sys.modules[function.__module__], function.__name__), "py_func")


def test_the_largest_key_takes_less_than_50_ms():
    seconds = []
    for _ in range(5):
        kernel_key._description.cache_clear()
        before = time.process_time()
        source_key(ARCHITECTURES["megha"].serve[GLOBAL_MASTER])
        seconds.append(time.process_time() - before)
    assert min(seconds) < 0.05


def test_a_kernel_with_a_global_that_no_key_can_tell_is_compiled_and_not_kept(home, caplog):
    assert called(reads_something)[0] == 7
    assert not list(home.glob("kernels/*"))
    (said,) = lines(caplog)
    assert "reads_something reaches a value of type test_kernel_cache.Something; the kernel is not kept" in said


class Something:
    """Of a type that a kernel can only name, not use."""


shape = Something()


def reads_something(numbers):
    return numbers[0] * numbers.shape[0] // 2


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_kernel_is_compiled_once_and_loaded_after_that(home, caplog):
    assert [called(), called(), called(second)] == [(7, False), (7, True), (8, False)]
    assert {path.suffix for path in home.glob("kernels/*")} == {".kernel"}
    assert [oct(path.stat().st_mode & 0o777) for path in (home, home / "kernels", next(home.glob("kernels/*")))] == [
        "0o700", "0o700", "0o600"]
    assert lines(caplog) == []


def test_of_an_engine_machine_code_is_kept_and_names_alone(home):
    assert [called(), called()] == [(7, False), (7, True)]
    _, ((_, kind, (code, names)), *_) = kernel_files.read(only_file(home))
    assert kind == "object" and code.startswith(b"\x7fELF")
    module = binding.parse_bitcode(names)
    assert not list(module.functions)  # nothing to be linked with
    assert any("first" in each.name for each in module.global_variables)


def sine(numbers):
    return math.sin(numbers[0])


def test_numba_is_asked_for_what_a_kept_kernel_refers_to_only_where_the_process_does_not_know_it(home, monkeypatch):
    asked = []
    called(sine)
    symbols, _ = kernel_files.read(only_file(home))
    assert "numba_adapt_ndarray" in symbols and not any(each.startswith("llvm.") for each in symbols)
    monkeypatch.setattr(type(cpu_target.target_context), "refresh", lambda _: asked.append(True))
    assert called(sine) == (0, True)
    assert asked == []
    monkeypatch.setattr(kernel_cache, "address_of_symbol", lambda name: None)
    assert called(sine) == (0, True)
    assert asked == [True]


def test_whether_a_kernel_is_kept(home):
    assert not is_compiled("first")
    called()
    assert is_compiled("first")
    assert not is_compiled("second")
    path = only_file(home)
    path.rename(path.with_name(path.name.replace(source_key(first), "0" * 16)))
    assert not is_compiled("first")


def with_header(body):
    return kernel_files.FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize("damage", [
    lambda content: b"",
    lambda content: content[:20],
    lambda content: content[:-1],
    lambda content: np.random.default_rng(1).bytes(len(content)),
    lambda content: content[:3000] + bytes([content[3000] ^ 1]) + content[3001:],
    lambda content: content.replace(b"subak kernel 1", b"subak kernel 0", 1),
    lambda content: with_header(b"no pickle"),
    lambda content: with_header(pickle.dumps((1, 2, 3))),
], ids=["empty", "cut", "a byte short", "random", "a bit", "another format", "no pickle", "not a kernel"])
def test_a_damaged_file_is_compiled_anew_and_said_in_one_line(home, caplog, damage):
    called()
    path = only_file(home)
    path.write_bytes(damage(path.read_bytes()))
    assert called() == (7, False)
    (said,) = lines(caplog)
    assert said.startswith(f"the kept kernel {path} cannot be used (")
    assert said.endswith("first is compiled anew")
    assert "\n" not in said
    assert called() == (7, True)


@pytest.mark.parametrize("limit", [0, 4096])
def test_a_full_disk_costs_the_cache_and_not_the_run(home, caplog, limit):
    kernel_folder()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        assert [called(), called(second)] == [(7, False), (8, False)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (said,) = lines(caplog)
    assert said == (f"compiled kernels cannot be kept in {home / 'kernels'} (File too large); the next process "
                    "compiles them again")
    assert not list(home.glob("kernels/*"))
    assert [called(), called()] == [(7, False), (7, True)]


def test_what_is_not_used_for_a_while_is_removed(home):
    called()
    called(second)
    kept = home / "kernels"
    old_kernel, used = sorted(kept.glob("*.kernel"))
    others = [kept / "x.lock", kept / "tmp123.part", kept / "other.txt"]
    for path in others:
        path.touch()
    versions = [home / "0123456789abcdef", home / "fedcba9876543210"]
    for path in versions:
        (path / "simulator").mkdir(parents=True)
    for path in (old_kernel, used, *others, versions[0]):
        age(path, KEPT_DAYS + 1)
    assert called(second) == (8, True)  # which is a use
    remove_unused(kept)
    assert set(kept.iterdir()) == {used, others[2]}
    assert {path.name for path in home.iterdir()} == {"kernels", versions[1].name}


def test_a_kernel_that_is_compiled_removes_what_is_not_used(home):
    called()
    age(only_file(home), KEPT_DAYS + 1)
    called(second)
    assert "second" in only_file(home).name


def age(path, days):
    then = time.time() - days * DAY_S
    os.utime(path, (then, then))


# -- folders -----------------------------------------------------------------------------------------------------------


class Planted:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def plant(path, mark):
    path.write_bytes(with_header(pickle.dumps(Planted(mark))))


def test_a_planted_pickle_would_be_loaded_from_a_folder_that_is_ours(home, tmp_path):
    called()
    plant(only_file(home), tmp_path / "mark")
    called()
    assert (tmp_path / "mark").exists()  # so the tests below can fail


@pytest.mark.parametrize("inner", ["", "kernels"])
def test_nothing_is_loaded_from_a_folder_that_others_may_write(home, tmp_path, caplog, inner):
    called()
    plant(only_file(home), tmp_path / "mark")
    (home / inner).chmod(0o777)
    forget()
    assert called() == (7, False)
    assert not (tmp_path / "mark").exists()
    instead = tmp_path / "tmp" / f"subak-{os.geteuid()}"
    assert lines(caplog) == [f"{home / inner} belongs to another user, or others may write to it (chmod go-w); "
                             f"compiled kernels are kept in {instead} instead"]
    assert called() == (7, True)
    assert lines(caplog) == []
    assert [oct(path.stat().st_mode & 0o777) for path in (instead, instead / "kernels")] == ["0o700"] * 2


def make_link(path):
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize("change", [lambda path: path.chmod(0o666), make_link], ids=["mode", "link"])
def test_nothing_is_loaded_from_a_file_that_others_may_have_written(home, tmp_path, caplog, change):
    called()
    plant(only_file(home), tmp_path / "mark")
    change(only_file(home))
    assert called() == (7, False)
    assert not (tmp_path / "mark").exists()
    assert len(lines(caplog)) == 1
    assert called() == (7, True)


@pytest.mark.parametrize("make", [
    lambda folder: (folder.mkdir(), folder.chmod(0o777)),
    lambda folder: ((folder.parent / "theirs").mkdir(mode=0o700), folder.symlink_to(folder.parent / "theirs")),
    lambda folder: folder.write_text(""),
], ids=["open", "link", "file"])
def test_without_a_safe_folder_kernels_are_compiled_in_memory_and_that_is_said_once(tmp_path, caplog, make):
    (tmp_path / "home").write_text("not a folder")
    make(tmp_path / "tmp" / f"subak-{os.geteuid()}")
    forget()
    assert [called(), called(), called(second)] == [(7, False), (7, False), (8, False)]
    (said,) = lines(caplog)
    instead = tmp_path / "tmp" / f"subak-{os.geteuid()}"
    assert said.startswith(f"{tmp_path / 'home' / 'subak'} cannot be used (Not a directory), {instead} ")
    assert said.endswith("; compiled kernels are not kept, every process compiles its own")
    assert not is_compiled("first")


def test_a_machine_without_any_folder_compiles_in_memory(monkeypatch, caplog):
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    monkeypatch.setattr("tempfile.gettempdir", lambda: (_ for _ in ()).throw(FileNotFoundError("no temporary folder")))
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert called() == (7, False)
    assert lines(caplog) == ["there is no folder; compiled kernels are not kept, every process compiles its own"]


def test_a_folder_of_another_user_is_not_used(home, tmp_path, monkeypatch, caplog):
    called()
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + 1)  # so that what is made here is another's
    forget()
    assert called() == (7, False)
    (said,) = lines(caplog)
    assert said.startswith(f"{home} belongs to another user, or others may write to it (chmod go-w), ")


def test_a_user_may_link_the_folder_elsewhere(home, tmp_path, caplog):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    home.parent.mkdir()
    home.symlink_to(tmp_path / "elsewhere")
    assert [called(), called()] == [(7, False), (7, True)]
    assert lines(caplog) == []


# -- processes ---------------------------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from numba import types
from subak.kernels.numba_internals import dispatch as kernel

here, part = Path(sys.argv[1]), sys.argv[2]
passes = kernel.OuterCompiler.define_pipelines

def define_pipelines(compiler):
    with open(here / "compiled", "a") as file:
        file.write(part + "\\n")
    if part == "dies compiling":
        os.kill(os.getpid(), signal.SIGKILL)
    while part == "is slow" and not (here / "go").exists():
        time.sleep(0.01)
    return passes(compiler)

kernel.OuterCompiler.define_pipelines = define_pipelines
if part == "dies writing":
    Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

def run_small(numbers):
    return numbers[0] + 1

print(kernel.kernel_of(types.int64(types.int64[::1]), run_small)(np.array([41])))
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that compiles and calls a kernel, and takes a part."""
    (tmp_path / "child.py").write_text(CHILD)
    started = []

    def call(part):
        process = subprocess.Popen([sys.executable, tmp_path / "child.py", tmp_path, part], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.wait()


def compiled_by(folder, count):
    """Wait until *count* compilations have begun; return by whom."""
    for _ in range(6000):
        found = (folder / "compiled").read_text().splitlines() if (folder / "compiled").exists() else []
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{count} compilations have not begun")


def ended(process):
    """Wait for the end of a process; return its code, its output and the lines that it said."""
    out, said = process.communicate(timeout=120)
    return process.returncode, out.strip(), said.splitlines()


def test_several_processes_compile_once_and_the_others_say_whom_they_wait_for(start, tmp_path):
    slow = start("is slow")
    compiled_by(tmp_path, 1)
    others = [start("waits") for _ in range(3)]
    said = [process.stderr.readline().strip() for process in others]
    assert said == [f"waiting for process {slow.pid}, which compiles run_small"] * 3
    (tmp_path / "go").touch()
    assert [ended(process) for process in (slow, *others)] == [(0, "42", [])] * 4
    assert compiled_by(tmp_path, 1) == ["is slow"]
    assert {path.suffix for path in (tmp_path / "home" / "subak" / "kernels").iterdir()} == {".kernel"}


def test_who_waits_goes_on_when_the_compiling_process_is_killed(start, tmp_path):
    slow = start("is slow")
    compiled_by(tmp_path, 1)
    other = start("waits")
    assert other.stderr.readline().startswith("waiting for process")
    slow.kill()
    assert ended(other) == (0, "42", [])
    assert compiled_by(tmp_path, 2) == ["is slow", "waits"]


def test_a_lock_whose_file_has_gone_meanwhile_is_no_lock(home, monkeypatch):
    path, flock = kernel_folder() / "first.lock", fcntl.flock

    def removed_by_another(descriptor, how):
        path.unlink(missing_ok=True)
        flock(descriptor, how)

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", removed_by_another)
        assert kernel_files.lock(path, "first") is None
    taken = kernel_files.lock(path, "first")
    assert path.read_text() == str(os.getpid())
    kernel_files.unlock(path, taken)
    assert not path.exists()


@pytest.mark.parametrize("death", ["dies compiling", "dies writing"])
def test_a_kill_leaves_the_cache_usable(start, tmp_path, death):
    assert ended(start(death))[0] == -signal.SIGKILL
    assert not list((tmp_path / "home" / "subak" / "kernels").glob("*.kernel"))
    assert [ended(start(part)) for part in ("compiles", "loads")] == [(0, "42", [])] * 2
    assert compiled_by(tmp_path, 2) == [death, "compiles"]


def test_what_the_runs_of_a_comparison_have_to_say_is_said_once_by_the_first_process(
        run, monkeypatch, caplog, capsys, tmp_path):
    jobs, news = ["first-fit", "best-fit"], []
    for label in jobs:
        forward = workers._Forward(news.append)
        forward.label = label
        forward.emit(logging.makeLogRecord({"msg": "waiting for %s", "args": ("process 7",)}))
        news.append(workers.News(label, workers.DONE))
    monkeypatch.setattr(parallel, "news_of", lambda *_, **__: (each for each in news))
    assert parallel.run_all(Scenario(schedulers=jobs), None, tmp_path, 2) == {}
    assert lines(caplog) == ["waiting for process 7"]
    run("--version")  # from then on
    capsys.readouterr()
    parallel.run_all(Scenario(schedulers=jobs), None, tmp_path, 2)
    assert capsys.readouterr().err == "subak: waiting for process 7\n"


# -- others who use Numba ----------------------------------------------------------------------------------------------


def test_numba_s_names_are_its_own_for_everybody_else():
    called()
    target = cpu_target.target_context
    assert "mangler" not in vars(target)
    plain = njit(NUMBER_OF)(first)
    (result,) = plain.overloads.values()
    assert result.fndesc.mangled_name == default_mangler(
        result.fndesc.qualname if not result.fndesc.modname else f"{result.fndesc.modname}.{result.fndesc.qualname}",
        (NUMBERS,), abi_tags=result.fndesc.abi_tags, uid=result.fndesc.uid)


def test_a_kernel_s_symbol_is_short_however_many_fields_its_state_has():
    many = NamedTuple("Many", [(f"field_{number}", np.ndarray) for number in range(60)])
    state = many(*[np.zeros(1)] * 60)
    compiled = kernel_of(types.float64(typeof(state)), lambda state: state.field_3[0])
    (result,) = compiled.overloads.values()
    assert len(result.fndesc.mangled_name) < 200


def test_a_user_s_function_is_cached_where_it_would_be(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("from numba import njit\n@njit(cache=True)\ndef one(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    theirs = importlib.import_module("theirs")
    called()
    assert theirs.one(1) == 2
    assert theirs.one.stats.cache_path == str(tmp_path / "__pycache__")
    assert list((tmp_path / "__pycache__").glob("*one*.nbc"))


# -- checked -----------------------------------------------------------------------------------------------------------


@inlined
def at(numbers, place):
    return numbers[place]


@noinline
def at_once_more(numbers, place):
    return at(numbers, place)


@kernel
def at_by_a_kernel(numbers, place):
    return at_once_more(numbers, place)


def by_itself(numbers, place):
    return numbers[place]


def by_inlined(numbers, place):
    return at(numbers, place)


def by_inner(numbers, place):
    return at_once_more(numbers, place)


def by_kernel(numbers, place):
    return at_by_a_kernel(numbers, place)


@pytest.mark.parametrize("policy", [by_itself, by_inlined, by_inner, by_kernel])
def test_a_checked_policy_may_not_leave_its_arrays(home, policy):
    inside = np.array([5, 6])[:1]  # so that what is read past its end is ours
    signature = types.int64(NUMBERS, types.int64)
    before = kernel_of(signature, policy, cache=False)
    assert before(inside, 1) == 6
    kept = set(home.glob("kernels/*"))
    checked = kernel_of(signature, policy, cache=False, checked=True)
    assert checked(inside, 0) == 5
    with pytest.raises(IndexError):
        checked(inside, 1)
    assert set(home.glob("kernels/*")) == kept
    assert at_by_a_kernel(inside, 1) == 6  # nobody else's is checked now
    assert kernel_of(signature, policy, cache=False)(inside, 1) == 6


HELPED = """
from numba import njit
@njit(cache=True)
def helper(numbers, place):
    return numbers[place]
def policy(numbers, place):
    return helper(numbers, place)
"""


def test_what_a_checked_policy_calls_in_its_own_file_is_checked(tmp_path, monkeypatch):
    (tmp_path / "helped.py").write_text(HELPED)
    monkeypatch.syspath_prepend(str(tmp_path))
    policy = importlib.import_module("helped").policy
    inside, signature = np.array([5, 6])[:1], types.int64(NUMBERS, types.int64)
    assert kernel_of(signature, policy, cache=False)(inside, 1) == 6
    for _ in range(2):
        with pytest.raises(IndexError):
            kernel_of(signature, policy, cache=False, checked=True)(inside, 1)
    del sys.modules["helped"]
    assert importlib.import_module("helped").helper(inside, 1) == 6  # what Numba keeps of it is as it was
