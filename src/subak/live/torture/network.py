"""The network of a world: a connection delivers frames in order, late, until it is cut.

A frame may be lost, or doubled. A cut connection loses what is under way on it; both ends notice, and connect anew as
soon as they reach each other.
"""
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, WORKER
from subak.live.role.layout import cluster_of_local
from subak.live.torture.process import Connection, Process
from subak.live.torture.scene import Scene

DELAY_S = (0.0002, 0.002)  # that a frame is under way
STRAY, STRAY_S = 0.02, 0.3  # how many frames are under way for much longer, and for how long
NOTICED_S = 1.0  # after which it is noticed at the latest that a frame was lost
RECONNECT_S = 0.2


class Network:
    """See the head of the file."""

    def __init__(self, world: Scene) -> None:
        self.world = world
        self.apart: dict[frozenset[str], int] = {}  # pairs that cannot reach each other, and how many faults say so

    def part(self, names: frozenset[str], more: int) -> None:
        """Let nobody of *names* reach anybody else, or (*more* -1) no more of that."""
        others = [process.name for process in self.world.processes]
        for name in names:
            for other in others:
                if other not in names:
                    self.hold_apart(frozenset((name, other)), more)

    def hold_apart(self, pair: frozenset[str], more: int) -> None:
        """Let two not reach each other, for one more fault or one less."""
        self.apart[pair] = self.apart.get(pair, 0) + more
        if self.apart[pair] > 0:
            for process in self.world.processes:
                if process.name in pair:
                    for connection in list(process.connections.values()):
                        if {end.name for end in connection.ends} == pair:
                            self.cut(connection)

    # -- connections ---------------------------------------------------------------------------------------------------

    def _speak(self, first: Process, second: Process) -> bool:
        """Whether two processes have a connection when both are there."""
        if first.peer is None or second.peer is None or first is second:
            return False
        ends = ((first, second.peer), (second, first.peer))
        if not all(end.role is None or end.role.layout.is_peer(peer) for end, peer in ends):
            return False  # one is new, and not in the file that the other has
        (one, a), (other, b) = sorted((first.peer, second.peer))
        layout = self.world.layout
        if (one, other) == (GLOBAL_MASTER, LOCAL_MASTER):
            return True
        if (one, other) == (LOCAL_MASTER, LOCAL_MASTER):
            return cluster_of_local(a) == cluster_of_local(b)
        return (one, other) == (LOCAL_MASTER, WORKER) and cluster_of_local(a) == layout.cluster_of(b)

    def meet_all(self, process: Process) -> None:
        """Connect a process with all that it speaks with."""
        for other in self.world.processes:
            self.meet(process, other)

    def meet(self, first: Process, second: Process) -> None:
        """Connect two processes that speak with each other, now or as soon as they can."""
        if not self._speak(first, second) or first.role is None or second.role is None:
            return
        assert first.peer is not None
        assert second.peer is not None
        if second.peer in first.connections:
            return
        if self.apart.get(frozenset((first.name, second.name)), 0) > 0:
            self.world.after(RECONNECT_S, lambda: self.meet(first, second))
            return
        connection = Connection((first, second), (second.peer, first.peer), lives=(first.life, second.life))
        for end, peer in zip(connection.ends, connection.peers, strict=True):
            assert end.role is not None
            end.connections[peer] = connection
            end.role.connect(peer)
            self.world.call_soon(end)

    def cut(self, connection: Connection) -> None:
        """End a connection."""
        if not connection.is_open:
            return
        connection.is_open = False
        for end, peer, life in zip(connection.ends, connection.peers, connection.lives, strict=True):
            if end.connections.get(peer) is connection:
                del end.connections[peer]
            if end.role is not None and end.life == life:
                end.inbox = [(seen, data) for seen, data in end.inbox if seen != peer]
                end.role.disconnect(peer)
                self.world.call_soon(end)
        first, second = connection.ends
        self.world.after(RECONNECT_S, lambda: self.meet(first, second))

    def transmit(self, connection: Connection, sender: Process, data: bytes) -> None:
        """Send a frame."""
        world, side = self.world, connection.ends.index(sender)
        if not connection.is_open:
            return
        if world.loss and world.random.random() < world.loss:
            world.happened["frame lost"] += 1
            world.after(float(world.random.uniform(0.0, NOTICED_S)), lambda: self.cut(connection))
            return
        times = 1 + int(world.doubling > 0 and world.random.random() < world.doubling)
        world.happened["frame doubled"] += times - 1
        for _ in range(times):
            late = float(world.random.uniform(*DELAY_S))
            if world.lateness and world.random.random() < STRAY:
                late += float(world.random.exponential(STRAY_S))
            connection.last[side] = max(connection.last[side], world.now + late)
            world.at(connection.last[side], lambda: self._deliver(connection, 1 - side, data))

    def _deliver(self, connection: Connection, side: int, data: bytes) -> None:
        if connection.is_open:
            receiver = connection.ends[side]
            receiver.inbox.append((connection.peers[side], data))
            self.world.schedule(receiver)
