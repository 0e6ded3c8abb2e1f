"""The growing tables of a graph, and the compiled functions on them."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from subak.federation.messages import CROSSES, HANDLER, SUBMITTER
from subak.federation.serving import compiled_service
from subak.simulator.exhaustive.graph import (
    BITS,
    COUNTS,
    EDGES,
    FLIGHT,
    LOOKAHEAD,
    MISSES,
    MISSES_MAX,
    MOST_MORE,
    NONE_THERE,
    STATES,
    VARIANT_BITS,
    Graph,
    place_results,
    place_states,
)
from subak.simulator.exhaustive.moves import Moves, Result
from subak.simulator.exhaustive.roles.configurations import Configuration
from subak.simulator.exhaustive.walk import walk

WIDTH = 40  # messages and timers under way, at most
FIRST_STATES = 1 << 14
FIRST_ROWS = 1 << 10  # of all other tables
FEW_BYTES = ("is_cut", "crosses", "outlives", "repeats", "speaks", "is_void", "used", "voided")
MANY_BYTES = ("edge_first", "memo_key", "result_key")
OF_STATES = {"parent": 1, "place": 4, "edge_first": 1, "edge": 8, "is_cut": 1}  # rows for each state at first
OF_THE_REST = (
    "message_to", "crosses", "outlives", "group", "way_first", "way", "cost", "needs", "needs_slot", "repeats",
    "lapse", "also_first", "also_slot", "also", "knows", "speaks", "epoch", "result_key", "next_state", "wrong",
    "out_first", "out", "halted_first", "halted", "begins", "halts", "ends", "is_void", "used", "voided",
)
AHEAD = 2048  # states that are looked at for what they lack
FUNCTIONS = {"walk": walk, "place_states": place_states, "place_results": place_results}


class Tables:
    """The graph of a configuration, with room for what comes."""

    def __init__(self, configuration: Configuration, moves: Moves, compiled: bool, drops: bool) -> None:
        self.configuration, self.moves, self.compiled, self.drops = configuration, moves, compiled, drops
        self.slots = len(moves.who)
        self.width = self.slots + FLIGHT + WIDTH
        self.results = 0
        self.told = dict.fromkeys(("message", "way", "variant", "also", "state"), 0)
        self.tables = self.empty()
        self.count = self.tables["tally"]
        self.begin()

    def empty(self) -> dict[str, np.ndarray]:
        """Return tables with room for a little."""
        def table(name: str, rows: int) -> np.ndarray:
            return np.zeros(rows + 1, np.uint8 if name in FEW_BYTES else np.int64 if name in MANY_BYTES else np.int32)

        return {
            "row": np.zeros((FIRST_STATES, self.width), np.int32),
            **{name: table(name, FIRST_STATES * times) for name, times in OF_STATES.items()},
            **{name: table(name, FIRST_ROWS) for name in OF_THE_REST},
            "place": np.zeros(4 * FIRST_STATES, np.int32),
            "memo_key": np.zeros(8 * FIRST_ROWS, np.int64), "memo": np.zeros(8 * FIRST_ROWS, np.int32),
            "crash": np.array(self.moves.crash, np.int32), "come_back": np.array(self.moves.come_back, np.int32),
            "miss": np.zeros((MISSES_MAX, 2), np.int64), "child": np.zeros(self.width, np.int32),
            "tally": np.zeros(COUNTS, np.int64),
        }

    def begin(self) -> None:
        """Enter the first state."""
        states, flight = self.moves.begin()
        row = self.tables["row"][0]
        row[:] = NONE_THERE
        row[: self.slots] = states
        row[self.slots] = 0
        row[self.slots + 1] = sum(left << (BITS * place) for place, left in enumerate(self.configuration.budgets))
        row[self.slots + FLIGHT : self.slots + FLIGHT + len(set(flight))] = sorted(set(flight))
        self.tables["parent"][0] = NONE_THERE
        self.count[STATES], self.count[LOOKAHEAD] = 1, AHEAD
        self.sync()
        self.rebuild()
        self.call["place_states"](0.0, 1)

    def begin_again(self) -> None:
        """Forget the states, and keep what is known of the roles."""
        self.tables["is_cut"][: self.count[STATES]] = 0
        self.count[:] = 0
        self.count[STATES], self.count[LOOKAHEAD] = 1, AHEAD
        for name in ("place", "used", "voided"):
            self.tables[name][:] = 0
        self.rebuild()
        self.call["place_states"](0.0, 1)

    def room(self, name: str, size: int) -> None:
        """See to it that a table has room."""
        table = self.tables[name]
        if len(table) < size:
            larger = np.zeros((max(size, 2 * len(table)), *table.shape[1:]), table.dtype)
            larger[: len(table)] = table
            self.tables[name] = larger
            self.stale = True

    def append(self, name: str, place: int, values: Sequence[float] | np.ndarray) -> None:
        """Write values behind what a table holds."""
        self.room(name, place + len(values))
        self.tables[name][place : place + len(values)] = values

    def sync(self) -> None:
        """Tell the tables of new messages, variants and states of roles."""
        moves, told = self.moves, self.told
        messages = moves.messages[told["message"] :]
        ways = [variant for message in messages for variant in message.variants]
        self.append("message_to", told["message"], [message.slot for message in messages])
        self.append("outlives", told["message"], [HANDLER[message.kind] == SUBMITTER for message in messages])
        self.append("group", told["message"], [message.group for message in messages])
        self.append("crosses", told["message"], [bool(CROSSES[message.kind]) for message in messages])
        self.append("way_first", told["message"], [told["way"]])
        self.append("way_first", told["message"] + 1,
                    told["way"] + np.cumsum([len(message.variants) for message in messages], dtype=np.int64))
        self.append("way", told["way"], ways)
        variants = moves.variants[told["variant"] :]
        for name in ("cost", "needs", "needs_slot", "repeats", "lapse"):
            self.append(name, told["variant"], [getattr(variant, name) for variant in variants])
        also = [effect for variant in variants for effect in variant.also]
        self.append("also_first", told["variant"] + 1,
                    told["also"] + np.cumsum([len(variant.also) for variant in variants], dtype=np.int64))
        self.append("also_slot", told["also"], [slot for slot, _ in also])
        self.append("also", told["also"], [variant for _, variant in also])
        self.append("knows", told["state"], moves.knows[told["state"] :])
        self.append("speaks", told["state"], moves.speaks[told["state"] :])
        self.append("epoch", told["state"], moves.epoch[told["state"] :])
        told["message"] += len(messages)
        told["way"] += len(ways)
        told["variant"] += len(variants)
        told["also"] += len(also)
        told["state"] = len(moves.states)

    def rebuild(self) -> None:
        """Let the compiled functions work on the tables as they are now."""
        self.graph = Graph(
            self.slots, self.moves.local_slots[0], self.width, int(self.configuration.early is not None),
            **self.tables)
        service = compiled_service if self.compiled else _plainly
        self.call = {name: service(function, self.graph) for name, function in FUNCTIONS.items()}
        self.stale = False

    def make_room(self, states_max: int, margin: int = MOST_MORE) -> bool:
        """See to it that there is room for *margin* more states; return whether there may be more."""
        states = int(self.count[STATES])
        if states >= states_max:
            return False
        if states + 2 * margin > len(self.tables["row"]):
            size = min(2 * len(self.tables["row"]) + 4 * margin, states_max + 4 * margin)
            for name in ("row", "parent", "is_cut"):
                self.room(name, size)
            self.room("edge_first", size + 1)
        if int(self.count[EDGES]) + 2 * MOST_MORE > len(self.tables["edge"]):
            self.room("edge", 2 * len(self.tables["edge"]))
        if 2 * len(self.tables["row"]) > len(self.tables["place"]):
            self.tables["place"] = np.zeros(1 << (4 * len(self.tables["row"]) - 1).bit_length(), np.int32)
            self.rebuild()
            self.call["place_states"](0.0, states)
        elif self.stale:
            self.rebuild()
        return True

    def make_good(self) -> None:
        """Find out what the walk lacked."""
        misses = int(self.count[MISSES])
        first = self.results
        for state, variant in self.tables["miss"][:misses].tolist():
            self.note(state, variant, self.moves.result(state, variant))
        self.sync()
        if 4 * (self.results + MISSES_MAX) > len(self.tables["memo_key"]):
            size = 2 * len(self.tables["memo_key"])
            self.tables["memo_key"], self.tables["memo"] = np.zeros(size, np.int64), np.zeros(size, np.int32)
            self.stale, first = True, 0
        if self.stale:
            self.rebuild()
        self.call["place_results"](float(first), self.results)

    def note(self, state: int, variant: int, result: Result) -> None:
        """Write a result down."""
        number = self.results
        for name, value in (
            ("result_key", (state << VARIANT_BITS) + variant + 1), ("next_state", result.state),
            ("wrong", result.wrong), ("begins", result.begins), ("halts", result.halts), ("ends", result.ends),
            ("is_void", result.is_void and self.drops), ("used", 0), ("voided", 0),
        ):
            self.append(name, number, [value])
        for name, values in (("out", result.answers), ("halted", result.halted)):
            place = int(self.tables[f"{name}_first"][number])
            self.append(name, place, values)
            self.append(f"{name}_first", number + 1, [place + len(values)])
        self.results += 1


def _plainly(function: Callable[..., int], graph: Any) -> Callable[[float, int], int]:
    return lambda now, number: function(graph, now, number)
