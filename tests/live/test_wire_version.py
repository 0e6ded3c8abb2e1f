"""Versions of the wire and of stores: layouts change with their number, later trailing fields are skipped."""
import asyncio
import typing
from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct, msgpack

from layouts import CLOSED, is_raised, needed, of_store, of_wire, of_worker, read_text, text_of
from live_federation import free_addresses
from subak.federation.megha.ledger import ENTRY
from subak.federation.messages import GLOBAL_MASTER, KINDS, LOCAL_MASTER, MESSAGE
from subak.live.process.links import Challenge, Hello, LinkError, Links, Welcome, Wire
from subak.live.process.trust import TokenTrust
from subak.live.role import frames
from subak.live.role.base import SPOKEN
from subak.live.role.facts import (
    ConfigurationFact,
    Fact,
    JobFact,
    MachineFact,
    ShapeFact,
    StageFact,
    read_configuration,
    read_job,
    read_machine,
    read_shape,
)
from subak.live.role.frames import (
    ENTRY_BYTES_MIN,
    MESSAGE_BYTES_MIN,
    WIRE_VERSION,
    Answer,
    Ask,
    Batch,
    Claim,
    Claimed,
    Dismissed,
    FrameError,
    Incoming,
    Join,
    Joined,
    Leave,
    Retract,
    WireVersion,
    entries_of,
    messages_of,
    resized,
)
from subak.live.role.global_master.queues import QueueSetup, QueuesFact, read_queues
from subak.live.role.layout import Layout, Timing
from subak.live.role.worker.worker_role import STATE_VERSION
from subak.live.store.sqlite import STORE_VERSION
from subak.live.tokens import hash_of

GOLDEN = Path(__file__).parents[1] / "golden" / "layouts"
KEPT = {
    "wire": (WIRE_VERSION[:2], "WIRE_VERSION in live/role/frames.py", of_wire),
    "store": ((STORE_VERSION,), "MIGRATIONS in live/store/sqlite.py", of_store),
    "worker": ((STATE_VERSION,), "STATE_VERSION in live/role/worker/worker_role.py", of_worker),
}
FACT = Fact(1, 2, b"body", 3)
CLAIM = Claim("store", 1, "life", 2, 3, 4, 5, ("former",), 6, True)
EXAMPLES = {type(each): each for each in (
    Batch(np.ones(2, MESSAGE).tobytes(), (FACT, FACT), np.ones(3, ENTRY).tobytes(), 4, 5),
    Retract(((1, 2), (3, 4))), Join(1, "identity", "m1", (4, 8), {"rack": "a"}, True), Joined(1, 2, 3),
    Ask(1, "logs", 2, 3, 4, 5, 6), Answer(1, b"body", "problem"), Dismissed("words"), CLAIM,
    Claimed(1, True, (FACT,), CLAIM, (7, 8)), Leave())}
SAID = (
    (read_shape, ShapeFact((1, 2), (("rack", "=", "a"),), 3)), (read_configuration, ConfigurationFact((4, 8))),
    (read_machine, MachineFact("m1", "identity", {"rack": "a"}, True, False, True, (4, 8), False)),
    (read_job, JobFact("g0-1", "a", 5, (StageFact(2, ("true",)), StageFact(1, ("false",), {"A": "b"})))),
    (read_queues, QueuesFact(1, (QueueSetup("a", 0, 2.0),), inner=(QueueSetup("b", 1),))))
HANDSHAKE = (Challenge("1.0", b"nonce"), Hello("1.0", 1, 2, b"nonce", b"proof"),
             Welcome(b"proof", 1, 2, "file", Layout(1, 2, ("cpu",)), Timing(lease=9.0), "words"))


@pytest.mark.parametrize("name", KEPT)
def test_a_layout_changes_with_its_version(name, request):
    version, where, layouts = KEPT[name]
    file, now = GOLDEN / f"{name}.txt", layouts()
    text, before = read_text(file.read_text())
    former, number = tuple(map(int, text.split("."))), needed(before, now)
    assert is_raised(former, version, number), (
        f"layouts of {name} have changed, or their version: raise the {number} number of {where} by one, from {text}")
    if request.config.getoption("--rewrite-golden"):
        file.write_text(text_of(".".join(map(str, version)), now))
    assert read_text(file.read_text()) == (".".join(map(str, version)), now), "write them: pytest --rewrite-golden"


def test_what_a_change_of_a_layout_asks_for():
    before = {"A": ["a: int", "b: str = ''"], "MESSAGE": ["kind: i2"], "kinds" + CLOSED: ["0 SUBMIT"]}
    assert needed(before, {**before}) == "none"
    assert needed(before, {**before, "A": [*before["A"], "c: int = 0"]}) == "minor"
    assert needed(before, {**before, "B": ["a: int"]}) == "minor"
    assert needed(before, {**before, "MESSAGE": ["kind: i2", "more: i8"]}) == "minor"
    assert needed(before, {**before, "A": [*before["A"], "c: int"]}) == "major"
    assert needed(before, {**before, "A": ["c: int = 0", *before["A"]]}) == "major"
    assert needed(before, {**before, "A": ["a: int"]}) == "major"
    assert needed(before, {**before, "MESSAGE": ["kind: i4"]}) == "major"
    assert needed(before, {**before, "kinds" + CLOSED: ["0 SUBMIT", "1 START"]}) == "major"
    assert needed(before, {**before, "facts" + CLOSED: []}) == "major"
    assert needed(before, {"A": before["A"]}) == "major"
    assert [is_raised((1, 2), now, "minor") for now in ((1, 2), (1, 3), (1, 4), (2, 0), (2, 1))] == [
        False, True, False, True, False]
    assert [is_raised((1, 2), now, "major") for now in ((1, 3), (2, 0), (3, 0))] == [False, True, False]
    assert [is_raised((1, 2), now, "none") for now in ((1, 2), (1, 3))] == [True, False]
    assert [is_raised((4,), now, "minor") for now in ((4,), (5,), (6,))] == [False, True, False]


def test_the_wording_of_a_reason_is_no_layout(monkeypatch):
    before = of_wire()
    monkeypatch.setattr("subak.federation.messages.REASONS", ("other", "words"))
    assert of_wire() == before


def lengthened(value):
    """Return a record, and those within it, as a later minor version would send them: with fields that nobody knows."""
    if isinstance(value, tuple):
        return [lengthened(each) for each in value]
    if not isinstance(value, Struct):
        return value
    config, fields = value.__struct_config__, {name: lengthened(getattr(value, name)) for name in
                                               value.__struct_fields__}
    if not config.array_like:
        return {**fields, "later": [1, "two"]}
    return [*([] if config.tag is None else [config.tag]), *fields.values(), [1, {"two": 3.0}], "later"]


@pytest.mark.parametrize("kind", typing.get_args(frames.Frame))
def test_fields_that_a_later_version_added_to_a_frame_are_skipped(kind):
    assert Incoming().read(msgpack.encode((1, lengthened(EXAMPLES[kind])))) == EXAMPLES[kind]


@pytest.mark.parametrize(("read", "fact"), SAID, ids=lambda each: type(each).__name__)
def test_fields_that_a_later_version_added_to_a_fact_are_skipped(read, fact):
    assert read(msgpack.encode(lengthened(fact))) == fact


@pytest.mark.parametrize("record", HANDSHAKE, ids=lambda each: type(each).__name__)
def test_fields_that_a_later_version_added_to_a_greeting_are_skipped(record):
    assert msgpack.decode(msgpack.encode(lengthened(record)), type=type(record)) == record


@pytest.mark.parametrize("kind", sorted(set().union(*SPOKEN.values())), ids=lambda kind: KINDS[kind])
def test_fields_that_a_later_version_added_to_rows_are_skipped(kind):
    message, entry = np.ones(2, MESSAGE), np.full(3, 7, ENTRY)
    message["kind"] = kind
    longer = Batch(b"".join(row.tobytes() + b"newer..." for row in message), (),
                   b"".join(row.tobytes() + b"!" for row in entry), 0, 0, MESSAGE.itemsize + 8, ENTRY.itemsize + 1)
    batch = Incoming().read(msgpack.encode((1, longer)))
    assert messages_of(batch).tobytes() == message.tobytes()
    assert entries_of(batch).tobytes() == entry.tobytes()
    assert batch.messages == message.tobytes()  # what is cut into rows without being read


def test_a_field_that_an_earlier_version_did_not_have_is_zero_in_its_rows():
    assert resized(b"abcd", 2, 3) == b"ab\0cd\0"


@pytest.mark.parametrize(("change", "words"), [
    ((0, 0, MESSAGE_BYTES_MIN - 1, ENTRY.itemsize), ">= 160"), ((0, 0, MESSAGE.itemsize, 0), ">= 50"),
    ((0, 0, MESSAGE.itemsize + 1, ENTRY.itemsize), "rows of another length"),
    ((0, 0, MESSAGE.itemsize, ENTRY.itemsize + 1), "rows of another length")])
def test_rows_that_do_not_come_out_even_or_are_too_short_are_no_frame(change, words):
    batch = Batch(bytes(2 * MESSAGE.itemsize), (), bytes(3 * ENTRY.itemsize), *change)
    with pytest.raises(FrameError, match=words):
        Incoming().read(msgpack.encode((1, batch)))


def test_rows_of_this_major_version_have_never_been_shorter():
    assert MESSAGE.itemsize >= MESSAGE_BYTES_MIN and ENTRY.itemsize >= ENTRY_BYTES_MIN
    if WIRE_VERSION.minor == 0:
        assert (MESSAGE.itemsize, ENTRY.itemsize) == (MESSAGE_BYTES_MIN, ENTRY_BYTES_MIN)


@pytest.mark.parametrize(("text", "speaks"), [
    ("1.2", True), ("1.0", True), ("1.999", True), ("2.0", False), ("0.2", False), ("11.2", False), ("1.2-big", False),
    ("0123456789abcdef", False), ("1.2\n", False), ("1.", False), ("", False)])
def test_versions_of_one_major_number_speak_with_each_other(text, speaks):
    assert WireVersion(1, 2, "little").speaks(text) is speaks


def test_machines_of_another_byte_order_speak_with_each_other_alone():
    big = WireVersion(1, 0, "big")
    assert str(big) == "1.0-big"
    assert big.speaks("1.7-big") and not big.speaks("1.0")


# -- on a connection ---------------------------------------------------------------------------------------------------


class Driver:
    """Notes what connects."""

    def __init__(self):
        self.peers = []

    def connected(self, wire):
        self.peers.append(wire.peer)

    def disconnected(self, wire):
        pass


def words(there, here):
    return (f"wire version {there} there, {here} here: run releases of subak with the same major wire version on "
            "both")


def greet(dialled, dials):
    """Let a process of one version dial one of another; return the peers that each has then, and the error."""
    async def run():
        token, driver = TokenTrust(hash_of("t" * 40)), Driver()
        host, port = free_addresses(1)[0].split(":")
        server = Links((LOCAL_MASTER, 0), token, "file", driver, Layout(1, 1, ("cpu",), False))
        client = Links((GLOBAL_MASTER, 0), token, "file", Driver())
        server.version, client.version = dialled, dials
        await server.listen(host, int(port))
        try:
            wire, _ = await client.connect(host, int(port), 0)
            return driver.peers, wire.peer, ""
        except LinkError as error:
            return driver.peers, None, str(error)
        finally:
            await server.close()
    return asyncio.run(run())


@pytest.mark.parametrize(("dialled", "dials"), [((1, 0), (1, 3)), ((1, 3), (1, 0)), ((2, 1), (2, 1))])
def test_processes_of_one_major_version_connect(dialled, dials):
    assert greet(WireVersion(*dialled), WireVersion(*dials)) == ([(GLOBAL_MASTER, 0)], (LOCAL_MASTER, 0), "")


@pytest.mark.parametrize(("dialled", "dials", "there", "here"), [
    ((1, 0), (2, 0), "1.0", "2.0"), ((2, 4), (1, 3), "2.4", "1.3"),
    ((1, 0, "big"), (1, 0, "little"), "1.0-big", "1.0")])
def test_a_mismatch_is_one_line_that_names_both_versions(dialled, dials, there, here):
    assert greet(WireVersion(*dialled), WireVersion(*dials)) == ([], None, words(there, here))


def test_the_line_names_the_address_once():
    async def run():
        said, token = [], TokenTrust(hash_of("t" * 40))
        driver = Driver()
        driver.unreachable = lambda *words: said.append(words)
        host, port = free_addresses(1)[0].split(":")
        server = Links((LOCAL_MASTER, 0), token, "file", Driver(), Layout(1, 1, ("cpu",), False))
        server.version = WireVersion(2, 0)
        await server.listen(host, int(port))
        client = Links((GLOBAL_MASTER, 0), token, "file", driver)
        client.dial(host, int(port), 0)
        await asyncio.sleep(0.5)  # it has tried again by then
        await client.close()
        await server.close()
        assert said == [(host, int(port), words("2.0", WIRE_VERSION))]
    asyncio.run(run())


def refusal_of(version):
    """Return what a master answers a process that says it has this version without having heard the challenge."""
    async def run():
        host, port = free_addresses(1)[0].split(":")
        token = TokenTrust(hash_of("t" * 40))
        server = Links((LOCAL_MASTER, 0), token, "file", Driver(), Layout(1, 1, ("cpu",), False))
        await server.listen(host, int(port))
        heard = asyncio.Queue()
        wire = Wire(lambda _, body: heard.put_nowait(body), lambda _: None)
        try:
            await asyncio.get_running_loop().create_connection(lambda: wire, host, int(port))
            assert msgpack.decode(await heard.get(), type=Challenge).version == str(WIRE_VERSION)
            wire.send(msgpack.encode(Hello(version, GLOBAL_MASTER, 0, b"nonce", b"proof")))
            return msgpack.decode(await asyncio.wait_for(heard.get(), 5.0), type=Welcome).words
        finally:
            wire.close()
            await server.close()
    return asyncio.run(run())


@pytest.mark.parametrize(("version", "shown"), [
    ("7.1", "7.1"), ("0123456789abcdef", "0123456789abcdef"), ("\x1b[31m" + "9" * 99, r"'\x1b[31m99999999999'")])
def test_a_master_refuses_a_process_of_another_version_whatever_it_says_it_is(version, shown):
    assert refusal_of(version) == words(WIRE_VERSION, shown)
