"""Changes that tests/support/mutants.py does not try, because nothing could notice them."""

# Changes that nothing could notice, by function, line and change, and why. Of several that are said alike in a line
# these are all, or with a number behind the change one, such as 3 for the third.
ONLY_ROOM = "room for what a step notes, which the next step empties; a place more or less is no matter"
NO_READER = "whose sibling it is, is written again before anybody reads it: a root has none"
NAMED = "the statuses of a run name every one"
SAME_KEYS = "the two keys of a node differ under mch alone, which does not scale by holdings"
NEWEST = "an attempt that its agent ends is the newest of its task on its machine"
ONLY_ENDS = "only what has ended is to be forgotten"
FROM_ONE = "numbers of starts and of requests begin at 1, and a bit of what is older says nothing"
AROUND = "it is taken modulo twice as much"
SIZED = "an entry that is about no task says nothing by its attempt"
VICTIMS = "what waits for victims is newer than they are, and is given up before them, so that nothing waits any more"
YES = "any number but 0 says yes"
DIFFER = "no two starts have a number"
GANG_DOWN = "when a gang is given up all of it that is anywhere leaves, and what leaves is not given up again"
BEFORE_NEXT = "what was tried is compared with the number of the next heartbeat, which is passed all the same"
FAR_BACK = "one more than what the log holds is further back than it goes, and so are two"
ONE_TERM = "where there is one, it is the last one too"
TWO = "a stage that waits for another is of a workload of two tasks at least"
AGAIN = "what is given up is given up again, to no effect: its tasks have ended"
SOME_ROWS = "pools have rows"
NO_EDGE = "where a job has no dependencies none is read, wherever they would begin"
NOT_REPEATED = "a GO is not said again by a timer, so nobody reads how often it was"
FIRST_FOUND = "the first that fits is taken whatever its score is"
NOT_DOUBTED = "what waits again or has ended is not doubted, and nothing else is left here"
REVISED = "who is asked again without news gets what he had"
UNREAD = "an array that nobody reads"
PAST = "where there is no room, that is a time before what has been accounted for"
TOLD = "it tells the compiler what is so, which it need not use"
EITHER_WAY = "both ways find the same"
MADE_ANEW = "room is made before anything happens"
IN_VAIN = "where nothing fits, a search goes on in vain"
UNREAD_PLACE = "a place that nobody reads"
STAYS = "who has nobody below stays where it is"
OFTEN = "to look through the heap more often changes nothing but the time that it takes"
EQUIVALENT: dict[tuple[str, str, str] | tuple[str, str, str, int], str] = {
    ("take", "if amount > 0:", "0  ->  -1"): "a request of 0 changes nothing, only more slowly",
    ("take", "if amount > 0:", "amount > 0  ->  amount >= 0"): "a request of 0 changes nothing, only more slowly",
    ("first_block", "if count - seen > LOG:", "count - seen > LOG  ->  count - seen >= LOG"): IN_VAIN,
    ("block_may_fit", "return False", "False  ->  True"): IN_VAIN,
    ("masked", "if room_during(profile, profile.pool[block * BLOCK + place], shape, now, until) > 0:", "0  ->  -1"):
        "a machine that is promised is taken out when it is chosen",
    ("may_write_over_more",
     "return bool(counts.ring < ledger.entry.size and 2 * (counts.version - counts.needed_from) > counts.ring)",
     "counts.version - counts.needed_from  ->  counts.version + counts.needed_from"): "to look again finds the same",
    ("drop_dead",
     "while sim.counts.lost_events > 0 and sim.events.size[SIZE] > 0 and not is_alive(sim, sim.events.slot[0]):",
     "0  ->  -1"): "there are as many events of lost attempts as are counted",
    ("in_one_block", "block = _at_a_line(int(ends.max(initial=0)))", "0  ->  1"): ONLY_ROOM,
    ("_memory", "return build_memory((0, 0), (0, 0), numbers)", "0  ->  1"): UNREAD,
    ("best_aligned", "if cost < least or (cost == least and machine < best):", "machine < best  ->  machine <= best"):
        "a machine that was freed is there once",
    ("goes_before", "if lanes.number.size > 0:", "0  ->  1"): "where there is one task, it goes before no other",
    ("goes_before", "return first < second", "first < second  ->  first <= second"): DIFFER,
    ("build_ordered", "wanted=np.full((resources, -(-shapes // BLOCK) * BLOCK), MOST, np.int32))",
     "-shapes // BLOCK  ->  -shapes * BLOCK"): "room that is never looked at",
    ("push", "lanes.sibling[task] = NOBODY", "lanes.sibling[task] = NOBODY  ->  pass"): NO_READER,
    ("pass_time", "if room > 0:", "room > 0  ->  room >= 0"): PAST,
    ("pass_time", "if room > 0:", "0  ->  -1"): PAST,
    ("start_or_reserve", "if gangs.reserved[gang] < np.inf:",
     "gangs.reserved[gang] < np.inf  ->  gangs.reserved[gang] <= np.inf"): "who has no reservation gives none up",
    ("serve_head",
     "if gang == head and rigid.gangs.reserved[gang] > rigid.profile.now[0] and not rigid.notes[TO_REVISE]:",
     "0  ->  -1"): ONE_TERM,
    ("build_profile",
     "segments = pools + 2 + (2 * tasks.arrival.size if is_kept else 0)  # each task holds or is to hold something",
     "0  ->  -1"): "a profile that is not kept is never opened: a segment more or less is no matter",
    ("build_profile", "size=np.array([segments - pools, 0, 0, 0]),", "0  ->  1", 3):
        "it is written again when a profile is opened",
    ("clear", "profile.time[segment] = profile.now[0]", "profile.time[segment] = profile.now[0]  ->  pass"):
        "that segment began before, and how long before is never asked",
    ("meld_children", "lanes.sibling[first] = NOBODY", "lanes.sibling[first] = NOBODY  ->  pass"): NO_READER,
    ("meld_children", "lanes.sibling[second] = NOBODY", "lanes.sibling[second] = NOBODY  ->  pass"): NO_READER,
    ("meld_children", "lanes.sibling[pairs] = NOBODY", "lanes.sibling[pairs] = NOBODY  ->  pass"): NO_READER,
    ("scale_by_holdings", "if level < key < NEVER:", "level < key < NEVER  ->  not level < key < NEVER"): SAME_KEYS,
    ("scale_by_holdings", "value[KEY] = dominant_at(tree, slot, key) / weight",
     "value[KEY] = dominant_at(tree, slot, key) / weight  ->  pass"): SAME_KEYS,
    ("next_leaf", "if saturated == (1 << tree.vector.shape[1]) - 1:", "1  ->  0"):
        "every leaf asks for a saturated resource then, and is refused one by one",
    ("is_new", 'window["bits"] = (window["bits"] << np.uint64(ahead) if ahead < WINDOW else NO_BITS) | ONE',
     "ahead < WINDOW  ->  ahead <= WINDOW"):
        "without the compiler a shift by 64 gives 0; compiled, test_a_window_by_hand notices",
    ("neediest_leaf", "lack = 1.0 - share_with(fair, tasks, node, shape, 0) / guarantee[node]", "1.0  ->  2.0"):
        "who may take lacks something, so the order is all that matters",
    ("excess", "while node > 0 and not is_above(fair, node, fair.queue[leaf]):", "0  ->  -1"):
        "the root is above every queue",
    ("reclaim_places", "if sim.counts.preempted_ever > before:",
     "sim.counts.preempted_ever > before  ->  sim.counts.preempted_ever >= before"):
        "where nothing was preempted nothing is left to be served",
    ("replace", "sim.counts.arrived_now, sim.counts.ended_now = 0, 0  # they have been seen", "0  ->  1"): ONLY_ROOM,
    ("replace", "sim.counts.arrived_now, sim.counts.ended_now = 0, 0  # they have been seen", "0  ->  -1"): ONLY_ROOM,
    ("_winner", "return f\"All schedulers have the same {title.removeprefix('lowest ')}, {text(ranked[0][0])}.\"",
     "0  ->  -1"): "they read the same",
    ("dominant_share", "largest = 0.0", "0.0  ->  -1.0"): "where nothing is present nobody holds anything",
    ("may_preempt", 'return dominant_share(master, tasks, queue, shape) <= topology.queue[queue]["share"] + SLACK',
     "dominant_share(master, tasks, queue, shape) <= topology.queue[queue]['share'] + SLACK  ->  "
     "dominant_share(master, tasks, queue, shape) < topology.queue[queue]['share'] + SLACK"):
        "no share is above another by just the slack for rounding",
    ("goes_first", 'return bool(first["priority"] < second["priority"])',
     "first['priority'] < second['priority']  ->  first['priority'] <= second['priority']"): "they differ here",
    ("gap", 'finished = summary.status.get("FINISHED", 0) == sum(summary.status.values())', "0  ->  1"): NAMED,
    ("gap", 'finished = summary.status.get("FINISHED", 0) == sum(summary.status.values())', "0  ->  -1"): NAMED,
    ("_best", "if measure.best is None or len(known) < 2:", "2  ->  1"): "of one value all are equal, so none is best",
    ("adopt",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "1  ->  2"): FROM_ONE,
    ("adopt",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "1  ->  0"): FROM_ONE,
    ("adopt",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "0  ->  1"): FROM_ONE,
    ("on_exited", "while number != NOBODY and (", "number != NOBODY  ->  number == NOBODY"): NEWEST,
    ("on_exited",
     "workers.rows.row[number][\"task\"] != task or workers.rows.row[number][\"state\"] != WORKER_RUNNING",
     "workers.rows.row[number]['task'] != task or workers.rows.row[number]['state'] != "
     "WORKER_RUNNING  ->  workers.rows.row[number]['task'] != task and workers.rows.row[number]['state'] != "
     "WORKER_RUNNING"): NEWEST,
    ("on_forget",
     "if number != NOBODY and workers.rows.row[number][\"state\"] == WORKER_ENDED:",
     "number != NOBODY and workers.rows.row[number]['state'] == WORKER_ENDED  ->  number != NOBODY "
     "or workers.rows.row[number]['state'] == WORKER_ENDED"): ONLY_ENDS,
    ("begin_incarnation",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "1  ->  2"): FROM_ONE,
    ("begin_incarnation",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "1  ->  0"): FROM_ONE,
    ("begin_incarnation",
     "workers.machine[machine][\"top\"], workers.machine[machine][\"bits\"] = -1, np.uint64(0)",
     "0  ->  1"): FROM_ONE,
    ("pulse",
     "other = (local.number + topology.standbys) % (2 * topology.standbys)",
     "local.number + topology.standbys  ->  local.number - topology.standbys"): AROUND,
    ("lose_attempts",
     "row[\"heir\"] = NOBODY if not has_heir(local, number) else row[\"heir\"]",
     "row['heir'] = NOBODY if not has_heir(local, number) else row['heir']  ->  pass"): VICTIMS,
    ("lose_attempts",
     "row[\"heir\"] = NOBODY if not has_heir(local, number) else row[\"heir\"]",
     "not has_heir(local, number)  ->  has_heir(local, number)"): VICTIMS,
    ("has_heir",
     "return bool(heir != NOBODY and local.rows.row[heir][\"state\"] == ATTEMPT_PENDING)",
     "heir != NOBODY and local.rows.row[heir]['state'] == ATTEMPT_PENDING  ->  heir != NOBODY or "
     "local.rows.row[heir]['state'] == ATTEMPT_PENDING"): VICTIMS,
    ("has_heir",
     "return bool(heir != NOBODY and local.rows.row[heir][\"state\"] == ATTEMPT_PENDING)",
     "heir != NOBODY  ->  heir == NOBODY"): VICTIMS,
    ("has_heir",
     "return bool(heir != NOBODY and local.rows.row[heir][\"state\"] == ATTEMPT_PENDING)",
     "local.rows.row[heir]['state'] == ATTEMPT_PENDING  ->  local.rows.row[heir]['state'] != ATTEMPT_PENDING"): VICTIMS,
    ("take_over", "local.standing.active = 1", "1  ->  2"): YES,
    ("forget_cluster",
     "local.asker[master][\"top\"], local.asker[master][\"bits\"] = NEVER, np.uint64(0)",
     "0  ->  1"): FROM_ONE,
    ("adopt_incarnation",
     "local.asker[sender][\"top\"], local.asker[sender][\"bits\"] = NOBODY, np.uint64(0)",
     "0  ->  1"): FROM_ONE,
    ("accept", "entry[\"held\"] = 1", "1  ->  2"): YES,
    ("goes_first",
     "return bool(first[\"start\"] > second[\"start\"])",
     "first['start'] > second['start']  ->  first['start'] >= second['start']"): DIFFER,
    ("write_whole", "enter(local.ledger, ENTRY_WHOLE, first, NOBODY, 0)", "0  ->  1"): SIZED,
    ("write_whole", "enter(local.ledger, ENTRY_WHOLE, first, NOBODY, 0)", "0  ->  -1"): SIZED,
    ("member_held",
     "leave(master, topology, rules, tasks, task, out)",
     "leave(master, topology, rules, tasks, task, out)  ->  pass"): GANG_DOWN,
    ("give_gang_up", "master.gang[gang][\"failed\"] = True", "master.gang[gang]['failed'] = True  ->  pass"): GANG_DOWN,
    ("give_gang_up", "master.gang[gang][\"failed\"] = True", "True  ->  False"): GANG_DOWN,
    ("take_turn", "master.counts.placing = 1", "1  ->  2"): YES,
    ("answer_heartbeat", "master.counts.beats += 1", "1  ->  2"): BEFORE_NEXT,
    ("answer_heartbeat", "master.counts.scanned = master.fleet.freed_blocks[LOG] - LOG - 1", "1  ->  2"): FAR_BACK,
    ("settle_doubts", "master.counts.doubts = 1", "1  ->  2"): YES,
    ("on_wake", "unknown += 1", "1  ->  2"): YES,
    ("on_arrive", "if stages.of_task.size > 0 and stages.waits[stages.of_task[place]] > 0:", "0  ->  1"): TWO,
    ("terms_of", "return jobs.terms[place if jobs.terms.size > 1 else 0]", "0  ->  -1"): ONE_TERM,
    ("conclude", "if jobs.stages.of_task.size > 0:", "0  ->  1"): TWO,
    ("give_up", "if jobs.stages.of_task.size > 0:", "0  ->  1"): TWO,
    ("give_dependents_up", "jobs.given_up[child] = True", "jobs.given_up[child] = True  ->  pass"): AGAIN,
    ("give_dependents_up", "jobs.given_up[child] = True", "True  ->  False"): AGAIN,
    ("begin_whole", "master.counts.doubts = 1", "1  ->  2"): YES,
    ("build_part", "return Attempts(np.zeros(max(rows, 1), ROW), first, RowCounts(free_row=NOBODY))",
     "1  ->  0"): SOME_ROWS,
    ("choose", "if master.queue_order.queue.size > 0:", "0  ->  1"): "of one queue it is always the turn",
    ("member_held", "send_request(master, topology, rules, tasks, member, GO, NOBODY, 0, out)", "0  ->  1"):
        NOT_REPEATED,
    ("member_held", "send_request(master, topology, rules, tasks, member, GO, NOBODY, 0, out)", "0  ->  -1"):
        NOT_REPEATED,
    ("end", "me[\"doubted\"] = False", "me['doubted'] = False  ->  pass"): NOT_DOUBTED,
    ("settle_doubts", "master.task[task][\"doubted\"] = False",
     "master.task[task]['doubted'] = False  ->  pass"): NOT_DOUBTED,
    ("settle_doubts", "master.task[task][\"doubted\"] = False", "False  ->  True"): NOT_DOUBTED,
    ("emptiest_bin", "best, highest = NOWHERE, 0", "0  ->  1"): FIRST_FOUND,
    ("emptiest_bin", "best, highest = NOWHERE, 0", "0  ->  -1"): FIRST_FOUND,
    ("tell_queue", "tree.dominant[leaf] = 0.0", "0.0  ->  -1.0"): "no share is below 0, and there is one at least",
    ("build_queue_order", "told = np.zeros((len(leaf), len(resources) + 1), np.int64)", "1  ->  2"):
        "a column that nobody reads",
    ("take_over", "write_whole(local, topology)", "write_whole(local, topology)  ->  pass"):
        "who is told first finds no whole state in the ledger, and it is written then",
    ("keys_of", "return [(job.queue, stage.shape, stage.tasks if stage.gang else 0) for stage in job.stages]",
     "0  ->  -1"): "no gang has as many tasks as either",
    ("_room_for", "first = spans.take(count, place if spans is self.places else None) if count else 0", "0  ->  1"):
        NO_EDGE,
    ("_room_for", "first = spans.take(count, place if spans is self.places else None) if count else 0", "0  ->  -1"):
        NO_EDGE,
    ("_widen", "if end > first:", "end > first  ->  end >= first"): "to give no places back changes nothing",
    ("note_attempts", "if message[\"round\"] == 0:", "0  ->  -1"): "in the first round there is nothing to add to",
    ("bring", "if start < last:", "start < last  ->  start <= last"): "nothing is written where they are the same",
    ("bring", "copy.counts.epoch, copy.counts.version = epoch, 0", "0  ->  -1"): "no message ends before 0",
    ("undisturbed", "for level in range(int(depth.max(initial=0)) + 1):", "1  ->  2"): "no stage is so deep",
    ("_depths", "np.maximum.at(depth, child[behind], depth[parent[behind]] + 1)", "1  ->  2"):
        "levels are gone through in order, whether or not a stage is at each",
    ("_statistic",
     "return float(values.mean() if level is None else values[max(math.ceil(level * values.size) - 1, 0)])",
     "0  ->  -1"): "a level is above 0, so of one value it is the first",
    ("relative", "least = baseline.mean() if baseline.size else 0.0", "0.0  ->  -1.0"): "neither is above 0",
    ("serve", "rigid.notes[TO_REVISE] = 0", "rigid.notes[TO_REVISE] = 0  ->  pass"): REVISED,
    ("serve", "rigid.notes[TO_REVISE] = 0", "0  ->  1"): REVISED,
    ("start_or_reserve",
     "if rigid.profile.size[RESERVATIONS] == 0 and start(rigid, fleet, tasks, select_machine, gang, claims):",
     "0  ->  -1"): "where nobody has a reservation, the profile says the same, more slowly",
    ("serve_others",
     "rigid.below[lane] = key_of(rigid.by_lane, gang) if is_tight(rigid, fleet, tasks, gang) else 0.0",
     "0.0  ->  -1.0"): "no estimate is below 0",
    ("word", "place = self.builder.gep(self.words, [cgutils.intp_t(self.next)], inbounds=True)",
     "True  ->  False"): TOLD,
    ("word", "value.set_metadata(\"invariant.load\", self.constant)",
     "value.set_metadata('invariant.load', self.constant)  ->  pass"): TOLD,
    ("jobs_of_parts",
     'jobs = parts[0] if len(parts) == 1 else pl.concat(parts).group_by("job", maintain_order=True).agg(',
     "1  ->  0"): "of one part each job has one row already",
    ("jobs_of_parts",
     'jobs = parts[0] if len(parts) == 1 else pl.concat(parts).group_by("job", maintain_order=True).agg(',
     "0  ->  -1"): ONE_TERM,
    ("_places", "if count <= PASSES_MAX:", "count <= PASSES_MAX  ->  count < PASSES_MAX"): EITHER_WAY,
    ("_places", "if count <= PASSES_MAX:", "count <= PASSES_MAX  ->  not count <= PASSES_MAX"): EITHER_WAY,
    ("undisturbed", "here = np.flatnonzero((depth == level) & (self.longest >= 0))",
     "(depth == level) & (self.longest >= 0)  ->  (depth == level) | (self.longest >= 0)"):
        "times only grow, and each stage's is done when its level is; one without tasks adds nothing",
    ("_numbered", "found = column.unique(maintain_order=True)", "True  ->  False"):
        "nothing says how groups are numbered",
    ("_groups", "group = np.floor(np.cumsum(part) - part).astype(np.int64)",
     "np.cumsum(part) - part  ->  np.cumsum(part) + part"): "which machines are looked at together decides nothing",
    ("_codes", "return code.astype(np.uint16 if machines < 2**16 else np.uint32)", "16  ->  15"):
        "numbers of four bytes hold all",
    ("without_ended", "none = np.empty(0, np.int32)", "0  ->  1"): MADE_ANEW,
    ("_listed", "if stages.of_task.size == 0:", "0  ->  -1"): "of no stages the lists are empty as well",
    ("without_ended", "events=_renumbered_events(sim.events, number), losses=build_losses(0),", "0  ->  1"): MADE_ANEW,
    ("_renumbered_events", 'slot["item"] = np.maximum(number[slot["item"]], 0)', "0  ->  -1"):
        "neither is it an attempt of the last row",
    ("_numbers", "return np.where(there, number[np.where(there, links, 0)], NOBODY).astype(np.int32)", "0  ->  -1"):
        "what is found for a link that leads nowhere is not taken",
    ("build_line", "places = 1 << max(int(order.size - 1).bit_length(), 0)", "1  ->  2", 1):
        "of more places than members the last are always empty",
    ("build_claims", "np.zeros(1, np.int64), np.zeros(3, np.int64))", "1  ->  2"): UNREAD_PLACE,
    ("build_claims", "np.zeros(1, np.int64), np.zeros(3, np.int64))", "3  ->  4"): UNREAD_PLACE,
    ("claim", "claims.task[claims.size[0]] = task", "0  ->  -1"): ONE_TERM,
    ("claim", "claims.machine[claims.size[0]] = machine", "0  ->  -1"): ONE_TERM,
    ("claim", "claims.size[0] += 1", "0  ->  -1"): ONE_TERM,
    ("take_back", "give_back(fleet, tasks, tasks.shape[task], claims.machine[claims.size[0]])", "0  ->  -1"): ONE_TERM,
    ("apply_ends", "if sim.stages.of_task.size > 0:", "0  ->  1"): TWO,
    ("latest_on", "latest = -1", "1  ->  2"): "any number below 0 is nobody's",
    ("drop_first", "for other in range(child + 1, min(child + WAYS, last)):", "1  ->  0"):
        "an event is not earlier than itself",
    ("no_interference",
     "return build_interference(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))",
     "0  ->  1", 2): UNREAD,
    ("no_interference",
     "return build_interference(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))",
     "0  ->  1", 3): UNREAD,
    ("touch", "shared.touched[shared.size[0]] = machine", "0  ->  -1"): ONE_TERM,
    ("may_hold", "return False", "False  ->  True"): "a search that leaves nothing out finds the same, more slowly",
    ("first_that_fits", "while size > 0:", "0  ->  -1"):
        "the last place of the stack is 0, a node that nobody is below",
    ("first_that_fits", "left_last = trees.first[base + 2 * node] < trees.first[base + 2 * node + 1]",
     "base + 2 * node + 1  ->  base + 2 * node - 1"): "in which order both halves are searched, the same is found",
    ("clear", "profile.size[RESERVATIONS], profile.size[IS_OPEN], profile.size[UNUSED] = 0, 1, 0", "1  ->  2"): YES,
    ("hold", "begin = begin if begin > profile.now[0] else float(profile.time[before])",
     "begin > profile.now[0]  ->  begin >= profile.now[0]"): "what a segment was before now is never asked",
    ("hold", "if profile.time[before] < begin:", "profile.time[before] < begin  ->  profile.time[before] <= begin"):
        "two segments that were told apart, and are held alike, still are",
    ("note_end", "rigid.notes[TO_REVISE if gangs.until[gang] > now else LATE] = 1",
     "gangs.until[gang] > now  ->  gangs.until[gang] >= now"): "it is not now",
    ("run_rigid", "serve(rigid, sim.fleet, sim.tasks, select_machine, freed[:0], sim.claims)", "0  ->  -1"):
        "who is asked about what was freed has just been refused it",
    ("may_start", "return False", "False  ->  True", 1): "the placement that is asked then finds no machine either",
    ("may_start", "if profile.first.size > 1 and count == 1:", "1  ->  0", 2):
        "whether there is room for a task alone its placement finds out, too",
    ("masked",
     "rigid.frontier[SEEN, shape] = fleet.freed_blocks[LOG] - LOG - 1  # so that a search begins at the first block",
     "1  ->  2"): FAR_BACK,
    ("release_claims", "now = rigid.profile.now[0]", "0  ->  -1"): ONE_TERM,
    ("build_gangs", "lane = lane.reshape(-1).astype(np.int32)", "1  ->  2"):
        "of any length below 0 NumPy works out what it is",
    ("build_gangs", "counts = np.bincount(lane, minlength=kinds.shape[1])", "1  ->  0"):
        "each lane has a gang, so all are counted; a place more is not read",
    ("_verdict", "f\"one in a hundred waited longer than {rows['99 %'].texts()[0]}.\")", "0  ->  -1"): ONE_TERM,
    ("_caution",
     "left = {name: _mean([not_started(run.summary) for run in group]) or 0 for name, group in groups(runs).items()}",
     "0  ->  -1"): "of less than one nothing is said",
    ("begin_anew", "gang = first_below(rigid.all, 0, ABSENT)", "0  ->  1"):
        "the first in order is asked first, and opens the profile, which has no reservation then",
    ("sort_down", "for place in range(gangs.size // 2 - 1, -1, -1):", "2  ->  1"): STAYS,
    ("sort_down", "for place in range(gangs.size // 2 - 1, -1, -1):", "1  ->  0", 1): STAYS,
    ("forget_lost_events", "if lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE]:", "2  ->  3"): OFTEN,
    ("forget_lost_events", "if lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE]:",
     "lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE]  ->  "
     "not (lost <= LOST_EVENTS_KEPT or 2 * lost <= sim.events.size[SIZE])"): OFTEN,
    ("__init__",
     "self.claim = Claim(identity, incarnation, life, latest, began, reserved, 0, supersedes, fence, self.is_behind)",
     "0  ->  -1"): "each local master is told the attempt of its cluster instead",
    ("snapshot",
     "yield Ended(key, row.fence, row.ending) if row.ending else Started(key, row.fence or Fence(0, 0, 0))",
     "0  ->  1"): "what was started has a fence; only what never began may have none",
    ("numbers",
     "return self.admitted.numbers[0] if len(self.admitted.numbers) == 1 else np.concatenate(self.admitted.numbers)",
     "1  ->  2"): "one array, concatenated, is the same",
    ("read_machines", "return machines_of(pl.concat(tables), given, events[0].parent, choice, provenance)",
     "0  ->  -1"): "all files of a table are in one folder",
    ("with_nodes", "several = parts.list.len() > 1", "1  ->  0"): "of one part none is the last but one",
    ("_leave_removed", "continue", "continue  ->  pass"): "nothing follows in the loop",
    ("_applied", "since = seen if epoch == now[0] and now[1] >= seen else 0", "now[1] >= seen  ->  now[1] > seen"):
        "of the same epoch and as much seen nothing is looked at",
    ("served", "return 0", "0  ->  1"): "each kind of node says it itself",
    ("served", "return 0", "0  ->  -1"): "each kind of node says it itself",
    ("csv_rows", "if block.text.count(b\",\") != (len(schema) - 1) * block.text.count(b\"\\n\"):", "1  ->  0"):
        "where no line has too many or too few columns, none is found, only more slowly",
    ("_alike", "shared = pl.max_horizontal(\"reduces\", pl.lit(1.0))", "1.0  ->  0.0"):
        "how long each of no reduces would take is nobody's time",
}
