"""Drives a role in a process: the clock, the store, the connections, and the order of effects.

One call of the role after the other: what has arrived goes in, what it writes is made durable in a thread of its own,
and then what it sends and does leaves. What arrives meanwhile waits, and goes in together (group commit). Where the
disk takes nothing the role stands still until it does.
"""
import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from subak.live.process.held import Held
from subak.live.process.links import Wire
from subak.live.role.base import Cut, Role, Write
from subak.live.role.layout import Peer
from subak.live.role.waits import COMMIT_S, Waits
from subak.live.store.checking import StoreError

RETRY_S = 0.5  # until a write is tried again that the disk did not take


class Store(Protocol):
    """Where a role's writes become durable; where *waits*, that takes a while, and is done beside the loop."""

    waits: bool

    def commit(self, writes: Sequence[Write]) -> None:
        """Make writes durable."""


def clock() -> float:
    """Return seconds of the clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Driver:
    """See the head of the file."""

    def __init__(self, role: Role, store: Store, say: Callable[[str], None]) -> None:
        self.role, self.store, self.say = role, store, say
        self.on_effect: Callable[[Any], None] = lambda effect: None  # who carries out what the role wants done
        self.wires: dict[Peer, Wire] = {}
        self.arrivals: list[tuple[Peer, bytes]] = []
        self.before: list[Callable[[float], None]] = []  # called before each call of the role
        self.when_written: list[asyncio.Future[None]] = []  # resolved by the next commit
        self.held = Held()
        self.commits = Waits(COMMIT_S)
        self.busy_s = 0.0  # in which the role was called, or waited for what it wrote
        self.problem = ""  # why the disk takes nothing
        self.wake = asyncio.Event()
        self.thread = concurrent.futures.ThreadPoolExecutor(1, "store")
        self.stopping = False

    # -- connections ---------------------------------------------------------------------------------------------------

    def connected(self, wire: Wire) -> None:
        """Note a connection with a peer; it takes the place of an earlier one."""
        assert wire.peer is not None
        before = self.wires.pop(wire.peer, None)
        if before is not None:
            self._drop(wire.peer)
            before.close()
        self.wires[wire.peer] = wire
        self.role.connect(wire.peer, wire.name)
        self.wake.set()

    def disconnected(self, wire: Wire) -> None:
        """Note that a connection has ended."""
        if wire.peer is not None and self.wires.get(wire.peer) is wire:
            del self.wires[wire.peer]
            self._drop(wire.peer)

    def _drop(self, peer: Peer) -> None:
        self.arrivals = [(seen, data) for seen, data in self.arrivals if seen != peer]
        self.role.disconnect(peer)
        self.wake.set()

    def arrived(self, wire: Wire, data: bytes) -> None:
        """Note a frame."""
        if wire.peer is not None and self.wires.get(wire.peer) is wire:
            self.arrivals.append((wire.peer, data))
            self.wake.set()

    def unreachable(self, host: str, port: int, words: str) -> None:
        """Note that a master could not be reached; it is tried again."""
        self.say(f"{host}:{port}: {words}")

    # -- the loop ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the role until `stop`."""
        self.held.start()
        while not self.stopping:
            await self._turn()
            await self._wait()
        self.held.stop()

    async def _turn(self) -> None:
        """Call the role once, and let what follows happen when it may."""
        self.wake.clear()
        arrivals, self.arrivals = self.arrivals, []
        waiting, self.when_written = self.when_written, []
        now = began = clock()
        for prepare in self.before:
            prepare(now)
        wires = dict(self.wires)
        ready = self.role.receive(now, arrivals)
        if ready.writes:
            await self._commit(ready.writes, waiting)
        self.busy_s += clock() - began
        for future in waiting:
            if not future.done():
                future.set_result(None)
        for effect in ready.effects:
            if isinstance(effect, Cut):
                self._cut(effect, wires)
            else:
                self.on_effect(effect)
        of_peer: dict[Peer, list[bytes]] = {}
        for peer, frame in ready.frames:
            of_peer.setdefault(peer, []).append(frame)
        for peer, frames in of_peer.items():
            if peer in wires:
                wires[peer].send(*frames)

    def _cut(self, cut: Cut, wires: dict[Peer, Wire]) -> None:
        self.say(f"a connection was ended: {cut.words}")
        wire = wires.get(cut.peer)
        if wire is not None:
            if self.wires.get(cut.peer) is wire:
                del self.wires[cut.peer]
            wire.close()

    async def _commit(self, writes: list[Write], waiting: list[asyncio.Future[None]]) -> None:
        """Make writes durable, however long that takes; those *waiting* are told when the disk does not take them."""
        loop, began = asyncio.get_running_loop(), clock()
        while True:
            try:
                if self.store.waits:
                    await loop.run_in_executor(self.thread, self.store.commit, writes)
                else:
                    self.store.commit(writes)
            except StoreError as error:
                if not self.problem:
                    self.say(f"nothing can be written, so nothing is done: {error}")
                self.problem = str(error)
                for future in waiting + self.when_written:
                    if not future.done():
                        future.set_exception(error)
                self.when_written = []
                await asyncio.sleep(RETRY_S)
                continue
            if self.problem:
                self.say("what waited for the disk is written")
            self.problem = ""
            self.commits.note(clock() - began)
            return

    async def _wait(self) -> None:
        """Wait until something arrives, or is due."""
        if self.wake.is_set() or self.stopping:
            await asyncio.sleep(0)
            return
        pause = self.role.due() - clock()
        if pause <= 0:
            await asyncio.sleep(0)
            return
        timer = asyncio.get_running_loop().call_later(min(pause, 3600.0), self.wake.set)
        await self.wake.wait()
        timer.cancel()

    def held_s(self) -> float:
        """Return the longest that the event loop was held in the last minute or two, in seconds."""
        return self.held.lately

    def stop(self) -> None:
        """End the loop after the present turn."""
        self.stopping = True
        self.wake.set()
