"""Environments for learning: they are the simulator's own runs, seeded, masked, and as Gymnasium wants them."""
import math
import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from small import cases, fleet_of, plain, some_workload, staged
from subak.errors import InputError
from subak.gym import SchedulingEnv, SchedulingVectorEnv
from subak.measures.of_run import bounded_slowdown
from subak.policy import find_scheduler
from subak.simulator.episodes.build import window_workload
from subak.simulator.episodes.state import HAS_ENDED
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
ORDERS = {"": "fifo", "+shortest-first": "shortest-first", "+priority": "priority"}


def first_possible(mask):
    return int(mask.argmax())


def only_the_first(mask):
    """What a strict order does: whoever is first, or nobody."""
    return 0 if mask[0] else mask.size - 1


def played(env, agent, **options):
    """Play one episode; return its rewards and what was seen. Who would wait for nothing has come to the end."""
    seen, _ = env.reset(**options)
    rewards, all_seen, ended = [], [seen], False
    while not ended:
        action = agent(seen["action_mask"])
        if not seen["action_mask"][action]:
            assert action == seen["action_mask"].size - 1
            break
        seen, reward, ended, cut, _ = env.step(action)
        assert not cut
        rewards.append(reward)
        all_seen.append(seen)
    return rewards, all_seen


def expected(workload, fleet, scheduler):
    return task_table(simulate(workload, fleet, find_scheduler(scheduler)), workload, fleet)


def same(table, wanted, fleet):
    """Whether the two say the same of every task; who waits at the end is said for another reason."""
    names = [name for name in wanted.columns if name != "reason"]
    if len(fleet.changes):  # the table of lost attempts is the run's
        names = [name for name in names if name not in ("wait_time", "framework_queueing")]
    return table.select(names).equals(wanted.select(names))


# -- the same run as the simulator's -----------------------------------------------------------------------------------


@quick
@given(case=cases(), placement=st.sampled_from(["first-fit", "best-fit", "worst-fit", "aligned-fit"]),
       order=st.sampled_from(list(ORDERS)), strict=st.booleans())
def test_an_agent_that_does_what_a_scheduler_does_gets_its_table(case, placement, order, strict):
    workload, fleet = case
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=len(workload.jobs), shown=len(workload.tasks),
                        placements=[placement], order=ORDERS[order])
    played(env, only_the_first if strict else first_possible, seed=1)
    wanted = expected(workload, fleet, placement + ("" if strict else "+backfill") + order)
    assert same(env.task_table(), wanted, fleet)


@pytest.mark.parametrize("strict", [True, False])
def test_gangs_start_together(strict):
    stages = [{"job": 0, "request": (2,)}, {"job": 1, "request": (1,)}, {"job": 2, "request": (2,)}]
    workload = staged(stages, [(0, 0, 5), (0, 0, 3), (1, 1, 2), (1, 1, 4), (1, 1, 2), (2, 2, 1)])
    workload = staged_gangs(workload, [True, True, False])
    fleet = fleet_of((3,), (2,), changes=[(4.0, 0, False, 0), (6.0, 0, True, 3)])
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=3, shown=6)
    played(env, only_the_first if strict else first_possible, seed=1)
    wanted = expected(workload, fleet, "first-fit" if strict else "first-fit+backfill")
    assert same(env.task_table(), wanted, fleet)
    assert wanted["attempts"].max() == 2  # the gang lost what ran elsewhere, too


def staged_gangs(workload, gang):
    return replace(workload, stages=workload.stages.with_columns(gang=pl.Series(gang)))


def test_a_gang_too_large_for_the_fleet_never_waits():
    workload = staged_gangs(staged([{"job": 0, "request": (2,)}, {"job": 1, "request": (1,)}],
                                   [(0, 0, 5), (0, 0, 3), (1, 0, 2)]), [True, False])
    env = SchedulingEnv(workload=workload, fleet=fleet_of((3,)), jobs=2, shown=4)
    played(env, first_possible, seed=1)
    assert env.task_table()["status"].to_list() == ["UNPLACEABLE", "UNPLACEABLE", "FINISHED"]


@settings(quick, max_examples=25)
@given(case=cases(), data=st.data())
def test_a_window_is_a_workload_of_its_own(case, data):
    workload, fleet = case
    jobs = data.draw(st.integers(1, len(workload.jobs)))
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=jobs, shown=40)
    for window in data.draw(st.lists(st.integers(0, env.windows - 1), min_size=1, max_size=3)):
        played(env, first_possible, options={"window": window})
        part = window_workload(env.batch.world, window)
        assert len(part.jobs) == jobs
        assert same(env.task_table(), expected(part, fleet, "first-fit+backfill"), fleet)


@pytest.mark.parametrize(("workload", "fleet", "order"), [
    (plain(*[(0, 1000, 1)] * 128, (0, 5, 1), (0, 5, 1), (10, 5, 1)), fleet_of(*[(1,)] * 130), ""),  # the last block
    (plain((0, 5, 1), (1, 9, 1), (5, 1, 1)), fleet_of((1,)), "+shortest-first"),  # one ends when another arrives
])
def test_nothing_is_left_of_the_episode_before(workload, fleet, order):
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=len(workload.jobs), order=ORDERS[order], shown=140)
    for _ in range(2):
        played(env, first_possible, seed=1)
        assert same(env.task_table(), expected(workload, fleet, "first-fit+backfill" + order), fleet)


def test_who_is_not_shown_cannot_be_started():
    workload = plain((0, 5, 3), (0, 5, 3), (0, 1, 1))
    env = SchedulingEnv(workload=workload, fleet=fleet_of((4,)), jobs=3, shown=1)
    played(env, first_possible, seed=1)
    assert env.task_table()["start"].to_list() == [0.0, 5.0, 5.0]  # the third would have fitted at once


# -- actions -----------------------------------------------------------------------------------------------------------


def test_an_action_names_who_starts_and_where():
    workload = plain((0, 5, 1), (0, 4, 1))
    env = SchedulingEnv(workload=workload, fleet=fleet_of((4,), (2,)), jobs=2, shown=3,
                        placements=["worst-fit", "best-fit"])
    seen, _ = env.reset(seed=1)
    assert seen["action_mask"].tolist() == [1, 1, 1, 1, 0, 0, 0]  # nothing is ahead to wait for
    seen, *_ = env.step(2 * 1 + 1)  # the second one, where it fits best
    assert seen["action_mask"].tolist() == [1, 1, 0, 0, 0, 0, 1]
    env.step(0)
    assert env.task_table()["machine"].to_list() == ["m0", "m1"]
    assert env.task_table()["start"].to_list() == [0.0, 0.0]


def test_waiting_lets_the_next_event_happen():
    env = SchedulingEnv(workload=plain((0, 5, 1), (7, 4, 1)), fleet=fleet_of((4,)), jobs=2, shown=2)
    seen, _ = env.reset(seed=1)
    assert seen["action_mask"].tolist() == [1, 0, 1]
    seen, _, ended, _, info = env.step(2)
    assert (seen["action_mask"].tolist(), ended) == ([1, 1, 0], False)
    assert info["parts"].tolist() == [7.0, 0.0, 0.0, 7.0]


def test_an_invalid_action_waits_and_where_nothing_is_ahead_starts_the_first():
    env = SchedulingEnv(workload=plain((0, 5, 1), (7, 4, 1)), fleet=fleet_of((4,)), jobs=2, shown=2)
    env.reset(seed=1)
    _, _, _, _, info = env.step(1)
    assert (info["parts"][3], info["invalid_actions"]) == (7.0, 1)
    _, _, _, _, info = env.step(2)
    assert (info["parts"][3], info["invalid_actions"]) == (0.0, 2)
    assert env.task_table()["start"].to_list() == [7.0, None]


@settings(quick, max_examples=25)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_the_mask_allows_exactly_what_fits(case, seed):
    workload, fleet = case
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=len(workload.jobs), shown=4, placements=["best-fit"])
    random = np.random.default_rng(seed)
    seen, _ = env.reset(seed=1)
    episode, ended = env.batch.world.state.episodes[0], False
    sim, shown = episode.sim, episode.shown
    while not ended:
        wanted = [head >= 0 and room(sim, head) for head in shown]
        assert seen["action_mask"][:-1].tolist() == wanted
        assert any(wanted) or episode.state[HAS_ENDED]
        seen, _, ended, _, _ = env.step(int(random.choice(np.flatnonzero(seen["action_mask"]))))


def room(sim, task):
    shape = sim.tasks.shape[task]
    bits = np.unpackbits(sim.fleet.allowed[sim.tasks.constraint_set[shape]].view(np.uint8), bitorder="little")
    return bool(((sim.fleet.free >= sim.tasks.request[:, shape, None]).all(axis=0) & bits.astype(bool)).any())


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_returns_are_what_the_report_measures():
    workload, fleet = some_workload()
    returns = {}
    for name in ("slowdown", "wait", "turnaround", "makespan"):
        env = SchedulingEnv(workload=workload, fleet=fleet, jobs=40, reward=name, placements=["best-fit"])
        returns[name] = sum(played(env, first_possible, seed=1)[0])
    table = env.task_table()
    assert table["wait_time"].mean() > 5  # there is something to measure
    assert -returns["wait"] == pytest.approx(table["wait_time"].mean())
    assert -returns["slowdown"] == pytest.approx(table.select(bounded_slowdown()).to_series().mean())
    assert -returns["turnaround"] == pytest.approx((table["finish"] - table["ready"]).mean())
    first = table["arrival"].min()
    assert -returns["makespan"] == pytest.approx((table["finish"].max() - first) / len(table))


def test_a_reward_may_be_weights_of_its_parts():
    workload, fleet = some_workload()
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=40, reward={"waiting": 2.0, "seconds": 0.5})
    env.reset(seed=1)
    _, reward, _, _, info = env.step(env.action_space.n - 1)
    assert reward == pytest.approx(-(2.0 * info["parts"][0] + 0.5 * info["parts"][3]) / 120)


def test_what_was_lost_is_not_counted_twice():
    workload = plain((0, 10, 1), (0, 20, 1))
    fleet = fleet_of((1,), (1,), changes=[(5.0, 0, False, 0), (6.0, 0, True, 1)])
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=2)
    total = sum(played(env, first_possible, seed=1)[0])
    table = env.task_table()
    assert table["attempts"].to_list() == [2, 1]
    assert -total == pytest.approx(table.select(bounded_slowdown()).to_series().mean()) == pytest.approx(1.3)


def test_a_service_has_no_slowdown():
    env = SchedulingEnv(workload=plain((0, math.inf, 1), (0, 20, 1)), fleet=fleet_of((2,)), jobs=2)
    assert sum(played(env, first_possible, seed=1)[0]) == pytest.approx(-0.5)


# -- as Gymnasium wants them -------------------------------------------------------------------------------------------


def test_gymnasium_finds_nothing_wrong():
    workload, fleet = some_workload()
    env = gymnasium.make("subak/Scheduling-v0", workload=workload, fleet=fleet, jobs=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


def test_the_same_seed_and_actions_give_the_same_bytes():
    workload, fleet = some_workload()
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=10)
    first, again, other = (played(env, first_possible, seed=seed) for seed in (3, 3, 4))
    assert first[0] == again[0]
    assert all(one[name].tobytes() == two[name].tobytes() for one, two in zip(first[1], again[1], strict=True)
               for name in one)
    assert len(first[1]) != len(other[1]) or first[0] != other[0]


def test_windows_go_on_from_the_seed_and_all_of_them_come():
    workload, fleet = some_workload(jobs=12)
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=10)
    env.reset(seed=9)
    drawn = [int(env.reset()[1]["window"]) for _ in range(60)]
    env.reset(seed=9)
    assert drawn == [int(env.reset()[1]["window"]) for _ in range(60)]
    assert (env.windows, set(drawn)) == (3, {0, 1, 2})


def test_without_a_seed_two_environments_differ():
    workload, fleet = some_workload(jobs=40)
    drawn = []
    for _ in range(2):
        env = SchedulingEnv(workload=workload, fleet=fleet, jobs=2)
        drawn.append([int(env.reset()[1]["window"]) for _ in range(20)])
    assert drawn[0] != drawn[1]


def test_many_at_once_do_what_each_alone_does():
    workload, fleet = some_workload()
    many = gymnasium.make_vec("subak/Scheduling-v0", num_envs=3, workload=workload, fleet=fleet, jobs=5).unwrapped
    assert isinstance(many, SchedulingVectorEnv)
    alone = [SchedulingEnv(workload=workload, fleet=fleet, jobs=5) for _ in range(3)]
    seen, _ = many.reset(seed=7)
    own = [env.reset(seed=7 + number)[0] for number, env in enumerate(alone)]
    begins, ended = 0, [False] * 3
    for _ in range(60):
        for number in range(3):
            assert all(seen[name][number].tobytes() == own[number][name].tobytes() for name in seen)
        actions = seen["action_mask"].argmax(axis=1)
        seen, rewards, ends, cuts, _ = many.step(actions)
        assert seen in many.observation_space
        assert not cuts.any()
        for number, env in enumerate(alone):
            if ended[number]:
                own[number], reward, ended[number] = env.reset()[0], 0.0, False
                begins += 1
            else:
                own[number], reward, ended[number], _, _ = env.step(int(actions[number]))
            assert (reward, ended[number]) == (rewards[number], ends[number])
    assert begins > 3


def test_some_of_many_begin_anew():
    workload, fleet = some_workload()
    many = SchedulingVectorEnv(3, workload=workload, fleet=fleet, jobs=5)
    many.reset(seed=[1, 2, 3])
    many.step(many.action_space.sample())
    before = many.batch.observation(slice(None))
    seen, info = many.reset(options={"reset_mask": [False, True, False], "window": [0, 4, 0]})
    assert info["window"][1] == 4
    assert np.array_equal(seen["waiting"][[0, 2]], before["waiting"][[0, 2]])


def test_what_is_seen_is_what_stands():
    workload = plain((0, 100, 2), (0, 10, 4), (0, 10, 1))
    env = SchedulingEnv(workload=workload, fleet=fleet_of((4,), (2,)), jobs=3, shown=4)
    env.reset(seed=1)
    seen, *_ = env.step(0)
    there, waited, estimate, size, asked = seen["waiting"].T
    assert there.tolist() == [1, 1, 0, 0]
    assert waited.tolist() == [0, 0, 0, 0]
    assert estimate[0] == pytest.approx(math.log1p(10) / math.log1p(1e9))
    assert size[0] == pytest.approx(math.log1p(1) / math.log1p(1e6))
    assert asked.tolist() == [1.0, 0.25, 0, 0]
    used, most, waiting, running = seen["fleet"]
    assert (used, most) == (pytest.approx(2 / 6), 0.5)
    assert (waiting, running) == (pytest.approx(math.log1p(2) / math.log1p(1e6)), pytest.approx(size[0]))
    assert env.action_masks().tolist() == [False, True, False, False, True]


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "said"), [
    ({"jobs": 41}, "jobs: a window must have at most the 40 jobs"), ({"jobs": 0}, "jobs: must be 1 or more, not 0"),
    ({"shown": 0}, "shown: must be 1 or more"), ({"order": "fair"}, "order: must be one of fifo, shortest-first"),
    ({"placements": ["tetris"]}, "placements: must be some of first-fit, .* not 'tetris'"),
    ({"placements": []}, "placements: must be some of"),
    ({"placements": ["best-fit", "best-fit"]}, "placements: each must be named once"),
    ({"reward": "fun"}, "reward: must be one of slowdown, wait"),
    ({"reward": {"fun": 1.0}}, "reward: weights must be of waiting, running"),
    ({"reward": {"waiting": math.nan}}, "reward: weights must be finite"), ({"reward": {}}, "reward: weights"),
    ({"estimates": "user"}, "estimates: the workload has none"),
    ({"fleet": None}, "workload and fleet: give both as tables"),
])
def test_mistakes_are_named(settings, said):
    workload, fleet = some_workload()
    with pytest.raises(InputError, match=said):
        SchedulingEnv(**{"workload": workload, "fleet": fleet, "jobs": 10, **settings})


def test_mistakes_in_calls_are_named():
    workload, fleet = some_workload()
    env = SchedulingEnv(workload=workload, fleet=fleet, jobs=10)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(InputError, match="window: must be from 0 to 30"):
        env.reset(options={"window": 31})
    many = SchedulingVectorEnv(2, workload=workload, fleet=fleet, jobs=10)
    with pytest.raises(InputError, match="one for each of 2 episodes"):
        many.reset(seed=[1])
    with pytest.raises(InputError, match="reset_mask"):
        many.reset(options={"reset_mask": [True]})


def test_workloads_may_be_named(tmp_path):
    workload, fleet = some_workload()
    (tmp_path / "fleet").mkdir()
    workload.write(tmp_path)
    fleet.write(tmp_path / "fleet")
    env = SchedulingEnv(workload=tmp_path, jobs=10)
    alike = SchedulingEnv(workload=str(tmp_path), machines=3, capacity={"cpu": 4, "memory": 8}, jobs=10)
    assert len(played(env, first_possible, seed=1)[0]) > 10
    assert alike.batch.world.fleet.capacity.shape == (2, 3)
