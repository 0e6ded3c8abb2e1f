"""LoTES before a run: classes, both linear programs, bins, rounding, the plan and how it is shown."""
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_lotes import fitting_bins, undominated_bins
from published import answers
from small import TWO, fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.fleet.table import read_fleet
from subak.placement.lotes import allocation as allocation_module
from subak.placement.lotes import assignment, bins, classes
from subak.placement.lotes.allocation import Problem, solve_allocation
from subak.placement.lotes.assignment import round_parts, solve_assignment
from subak.placement.lotes.bins import FINE_UNITS, all_bins, build_machine, most_valuable_bin
from subak.placement.lotes.classes import choose_centres, distances, find_centres
from subak.placement.lotes.plan import NO_BIN, make_plan
from subak.placement.lotes.settings import LotesSettings
from subak.reproduce.lotes.tables import HOURS, printed_problem, without_misfits
from subak.workload.samples import sample_folder
from subak.workload.table import read_workload

LAMBDA_STAR = answers("queueing")["lotes_tables_1_and_2"]["lambda_star_jobs_per_hour"]

ALL, GENERATED = LotesSettings(bins="all"), LotesSettings(bins="generated")


def assigned(problem, allocation, bins="all", most=100_000, pairs="allocation"):
    fine = np.rint(problem.request * FINE_UNITS).astype(np.int64)
    return solve_assignment(problem, allocation, fine, problem.capacity * FINE_UNITS,
                            LotesSettings(bins=bins, bins_max=most, pairs=pairs))


# The allocation LP


def test_lambda_star_of_the_papers_tables_is_the_truth():
    assert solve_allocation(printed_problem()).rate == pytest.approx(LAMBDA_STAR, rel=1e-7)


def test_lambda_star_moves_little_where_a_job_has_to_fit_one_machine():
    rate = solve_allocation(without_misfits(printed_problem())).rate
    assert rate == pytest.approx(LAMBDA_STAR, rel=1e-4)
    assert rate < LAMBDA_STAR


def test_the_allocation_of_two_classes_by_hand():
    """4 cores and 4 GB, a configuration each of (4, 2) and (0, 2): a job of 1 core and 1 GB, one of 1 GB, 10 s each.

    Memory is short: 4 GB serve 4 jobs at once. All of the first kind run on the first configuration, 2 at once.
    """
    problem = Problem(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 0.5]), np.array([[0.1, 0.1], [0.0, 0.1]]),
                      np.array([[4, 1], [2, 2]]), np.array([1, 1]))
    found = solve_allocation(problem)
    assert found.rate == pytest.approx(0.4)
    assert found.delta[0, 0] == pytest.approx([0.5, 1.0])
    assert found.delta[1, 1] == pytest.approx([0.0, 1.0])
    assert not found.delta[0, 1].any() and not found.delta[1, 0].any()


@st.composite
def problems(draw):
    """Small ones, in which every class fits some configuration."""
    resources, classes, configurations = (draw(st.integers(1, most)) for most in (3, 4, 3))
    capacity = np.array(draw(st.lists(st.lists(st.integers(1, 12), min_size=configurations, max_size=configurations),
                                      min_size=resources, max_size=resources)))
    request = np.array(draw(st.lists(st.lists(st.integers(0, 5), min_size=classes, max_size=classes),
                                     min_size=resources, max_size=resources)))
    request = np.minimum(request, capacity.max(axis=1)[:, None])
    request[0] = np.maximum(request[0], 1)
    capacity[:, 0] = capacity.max(axis=1)
    share = np.array(draw(st.lists(st.integers(1, 9), min_size=classes, max_size=classes)), float)
    seconds = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 60.0, 5000.0]), min_size=classes, max_size=classes)))
    machines = np.array(draw(st.lists(st.integers(1, 40), min_size=configurations, max_size=configurations)))
    rate = np.tile(1 / seconds, (configurations, 1))
    return without_misfits(Problem(request.astype(float), share / share.sum(), rate, capacity, machines))


@given(problems())
@settings(deadline=None, max_examples=100)
def test_the_programs_hold_what_they_promise(problem):
    allocation = solve_allocation(problem)
    assert (allocation.delta.sum(axis=1) <= 1 + 1e-7).all()  # (4)
    served = (allocation.jobs * problem.rate).sum(axis=0)
    assert (served >= allocation.rate * problem.share * (1 - 1e-7)).all()  # (2)
    assert not allocation.jobs[problem.rate == 0].any()
    listed, generated = assigned(problem, allocation), assigned(problem, allocation, "generated")
    assert listed.rate <= allocation.rate * (1 + 1e-7)
    assert generated.rate == pytest.approx(listed.rate, rel=1e-7)
    assert generated.rate_bound == pytest.approx(listed.rate, rel=1e-7)
    best = assigned(problem, allocation, "generated", pairs="all")
    assert listed.rate * (1 - 1e-7) <= best.rate <= allocation.rate * (1 + 1e-7)
    for found in (listed, generated):
        assert found.rate_rounded <= listed.rate * (1 + 1e-7)
        held = np.bincount(found.configuration, weights=found.machines, minlength=len(problem.machines))
        assert (held == np.where(allocation.jobs.any(axis=1), problem.machines, 0)).all()
        used = found.bins @ problem.request.T
        assert (used <= problem.capacity.T[found.configuration]).all()
        jobs = np.zeros(problem.rate.shape)
        np.add.at(jobs, found.configuration, found.bins * found.part[:, None])
        assert ((jobs * problem.rate).sum(axis=0) >= found.rate * problem.share * (1 - 1e-6)).all()  # (7)


# Bins


def test_the_bins_of_the_papers_figure_5():
    machine = build_machine(np.array([7 * FINE_UNITS]), np.array([[2, 3]]) * FINE_UNITS, np.array([0, 1]))
    assert machine.classes.tolist() == [1, 0]  # the larger first
    assert all_bins(machine, 10).tolist() == [[2, 0], [1, 2], [0, 3]]


@st.composite
def machines(draw):
    resources, classes = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    capacity = np.array(draw(st.lists(st.integers(1, 13), min_size=resources, max_size=resources)))
    request = np.array([draw(st.lists(st.integers(0, int(amount)), min_size=classes, max_size=classes))
                        for amount in capacity])
    request[0] = np.maximum(request[0], 1)
    value = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.0, 3.7]), min_size=classes, max_size=classes)))
    return capacity, request, value


@given(machines(), st.sampled_from([16, 40, bins.VISITS_AT_ONCE]))
@settings(deadline=None, max_examples=200)
def test_bins_are_those_of_brute_force(drawn, at_once):
    capacity, request, _ = drawn
    machine = build_machine(capacity * FINE_UNITS, request * FINE_UNITS, np.arange(request.shape[1]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bins, "VISITS_AT_ONCE", at_once)
        found = [tuple(row) for row in all_bins(machine, 10**6).tolist()]
    assert len(found) == len(set(found))
    assert set(found) == undominated_bins(capacity, request[:, machine.classes])


@given(machines())
@settings(deadline=None, max_examples=200)
def test_the_most_valuable_bin_is_that_of_brute_force(drawn):
    capacity, request, value = drawn
    found, proved = most_valuable_bin(capacity * FINE_UNITS, request * FINE_UNITS, np.arange(value.size), value, 10**6)
    assert proved
    assert tuple(found) in fitting_bins(capacity, request)
    assert found @ value == pytest.approx(max(np.array(jobs) @ value for jobs in fitting_bins(capacity, request)))


def test_too_many_bins_are_refused_or_generated():
    problem = printed_problem()._replace(capacity=np.array([[500], [500]]), machines=np.array([100]),
                                       rate=1 / HOURS[None])
    allocation = solve_allocation(problem)
    with pytest.raises(InputError, match=r"bins_max: there are more than 50 non-dominated bins; raise it, or set bins"):
        assigned(problem, allocation, "all", 50)
    assert assigned(problem, allocation, "auto", 50).generated
    listed, generated = assigned(problem, allocation), assigned(problem, allocation, "auto", 50)
    assert listed.considered[0] > 50 > generated.considered[0]
    assert generated.rate == pytest.approx(listed.rate, rel=1e-9)


def test_a_search_that_is_cut_short_still_bounds_lambda(monkeypatch):
    problem = without_misfits(printed_problem())
    allocation = solve_allocation(problem)
    exact = assigned(problem, allocation)
    monkeypatch.setattr(assignment, "most_valuable_bin", lambda *given: (most_valuable_bin(*given)[0], False))
    cut = assigned(problem, allocation, "generated")
    assert cut.rate <= exact.rate * (1 + 1e-9)
    assert cut.rate_bound == pytest.approx(allocation.rate)
    machine = np.array([7 * FINE_UNITS]), np.array([[2, 3]]) * FINE_UNITS, np.arange(2), np.array([1, 1.4])
    assert not most_valuable_bin(*machine, 1)[1]
    assert most_valuable_bin(*machine, 9)[1]


@pytest.mark.parametrize("work_max", [0, 10, 1_000, 30_000, 10**9])
def test_bins_are_generated_in_bounded_work(monkeypatch, work_max):
    problem = without_misfits(printed_problem())
    allocation = solve_allocation(problem)
    exact = assigned(problem, allocation)
    monkeypatch.setattr(assignment, "GENERATION_WORK_MAX", work_max)
    monkeypatch.setattr(assignment, "NODES_FEW", 20)
    asked = []
    monkeypatch.setattr(assignment, "most_valuable_bin",
                        lambda *given: asked.append(given[-1]) or most_valuable_bin(*given))
    cut = assigned(problem, allocation, "generated")
    assert sum(asked) * problem.share.size <= work_max
    assert 0 < cut.rate <= exact.rate * (1 + 1e-9) <= cut.rate_bound * (1 + 2e-9)
    assert (cut.machines.sum(), cut.part.sum()) == pytest.approx((problem.machines.sum(),) * 2)


def test_more_configurations_than_can_be_planned_for_are_refused(monkeypatch):
    monkeypatch.setattr(allocation_module, "PAIRS_MAX", 3)
    workload = plain((0, 5, 1, 1), (1, 5, 3, 2), resources=TWO)
    fleet = fleet_of((4, 4), (5, 4), resources=TWO)
    with pytest.raises(InputError, match="2 configurations of machines for 2 classes are 4 pairs, more than LoTES can "
                                         "plan for, 3"):
        make_plan(workload, fleet, LotesSettings(classes=2))
    monkeypatch.setattr(allocation_module, "PAIRS_MAX", 4)
    assert make_plan(workload, fleet, LotesSettings(classes=2)).allocation.rate > 0


def alike_pairs(configurations, classes):
    """One resource of which every class asks for 1 unit on any of machines that have 1, 2, 3 and so on."""
    return Problem(np.ones((1, classes)), np.full(classes, 1 / classes), np.ones((configurations, classes)),
                   1 + np.arange(configurations)[None], np.ones(configurations, np.int64))


def test_some_thousand_pairs_are_planned_for_and_more_than_twenty_thousand_are_not():
    assert solve_allocation(alike_pairs(250, 9)).rate == pytest.approx(250 * 251 / 2)
    with pytest.raises(InputError, match="2,001 configurations of machines for 10 classes are 20,010 pairs"):
        solve_allocation(alike_pairs(2_001, 10))


def test_bins_are_listed_in_calls_between_which_ctrl_c_is_heard():
    """20 classes of some hundred jobs each have more bins than can be looked at."""
    request = np.arange(40, 80).reshape(2, 20) * FINE_UNITS
    machine = build_machine(np.array([5_000, 5_000]) * FINE_UNITS, request, np.arange(20))
    room, progress = np.zeros((bins.VISITS_AT_ONCE >> 4, 20), np.int32), np.array([bins.LISTING_BEGINS])
    bins.list_bins(machine, room, progress, 1)
    bins.list_bins(machine, room, progress, bins.VISITS_AT_ONCE)
    assert progress[0] == bins.LISTING_GOES_ON


# Machine assignment


def test_fragmentation_as_in_the_papers_section_2():
    """30 machines of 8 cores serve 80 jobs of 3 cores when pooled, 60 one by one."""
    plan = make_plan(plain((0, 100, 3), (1, 100, 3)), fleet_of(*[(8,)] * 30), ALL)
    assert plan.allocation.rate == pytest.approx(0.8)
    assert plan.assignment.rate == pytest.approx(0.6)
    assert plan.packing_gap == pytest.approx(0.25)
    assert plan.assignment.bins.tolist() == [[2]] and plan.assignment.machines.tolist() == [30]
    assert plan.rounding_gap == pytest.approx(0)


def test_rounding_goes_by_the_largest_fractions_and_keeps_the_number_of_machines():
    part = np.array([1.2, 2.7, 0.1, 0.5, 0.5, 2.9999999999])
    assert round_parts(part, np.array([0, 0, 0, 1, 1, 2]), np.array([4, 1, 3])).tolist() == [1, 3, 0, 1, 0, 3]


def test_gaps_on_the_papers_tables():
    problem = without_misfits(printed_problem())
    allocation = solve_allocation(problem)
    found = assigned(problem, allocation)
    assert 0.98 < found.rate / allocation.rate < 1
    assert 0 <= 1 - found.rate_rounded / found.rate < 1e-3  # the paper: 1e-5


# Classes


def four_kinds(resources=TWO):
    """A hundred tasks of each of four kinds of request, all close to their kind."""
    kinds = [(10, 10), (40, 10), (10, 60), (100, 100)]
    tasks = [(50 * row + kind, 10.0 * (kind + 1), cpu + row % 3, memory + row % 2)
             for row in range(100) for kind, (cpu, memory) in enumerate(kinds)]
    return plain(*tasks, resources=resources)


def test_classes_are_the_kinds_that_were_drawn():
    plan = make_plan(four_kinds(), fleet_of(*[(500, 500)] * 4, resources=TWO))
    assert plan.classes.tasks.tolist() == [100] * 4
    assert plan.classes.share == pytest.approx(0.25)
    assert sorted(plan.classes.run_time) == pytest.approx([10, 20, 30, 40])
    assert plan.classes.request[:, 0] == pytest.approx([10.99, 10.5])
    new = np.array([[12, 39, 11, 300], [9, 12, 70, 300]])
    assert plan.classes.nearest(new, np.zeros(4, int)).tolist() == [0, 1, 2, 3]


def test_the_criterion_finds_four_kinds_and_one():
    workload = four_kinds()
    plan = make_plan(workload, fleet_of(*[(500, 500)] * 4, resources=TWO), LotesSettings(classes=0))
    assert plan.classes.share.size == 4
    one = make_plan(plain(*[(row, 5, 3) for row in range(9)]), fleet_of((8,)), LotesSettings(classes=0))
    assert one.classes.share.tolist() == [1.0]


def test_a_task_is_in_the_class_nearest_to_it():
    rng = np.random.default_rng(3)
    asked, tasks = rng.integers(1, 50, (2, 200)).astype(float), rng.integers(1, 9, 200).astype(float)
    weight = np.array([0.2, 0.1])
    centre, settled = find_centres(asked, tasks, weight, 5, 1)
    assert settled
    cluster = distances(asked, centre, weight).argmin(axis=1)
    for each in range(centre.shape[1]):
        mine = cluster == each
        assert centre[:, each] == pytest.approx(np.average(asked[:, mine], axis=1, weights=tasks[mine]))
    assert choose_centres(asked, tasks, weight, 1).at.shape[1] > 1


def test_classes_are_settled_in_bounded_steps(monkeypatch):
    """With very many different requests a beginning is carried on for fewer steps, one at the least."""
    rng = np.random.default_rng(3)
    asked, tasks, weight = rng.integers(1, 500, (2, 900)).astype(float), np.ones(900), np.array([0.2, 0.1])
    looked = []
    monkeypatch.setattr(classes, "distances", lambda *given: looked.append(1) or distances(*given))
    for cells_max, looks in ((0, 1), (900 * 5 * 3, 3)):
        monkeypatch.setattr(classes, "CELLS_SEEN_MAX", cells_max)
        looked.clear()
        centre, settled = find_centres(asked, tasks, weight, 5, 1)
        assert centre.shape == (2, 5)
        assert not settled
        assert len(looked) == classes.RESTARTS * (looks + 1)  # and one for the variance


def test_only_the_window_counts_and_a_plan_repeats_itself():
    workload = plain((5, 10, 2), (6, 10, 2), (100, 50, 4), (104, 70, 4))
    fleet = fleet_of((8,), (8,))
    late = make_plan(workload, fleet, LotesSettings(window_start=90, window_seconds=10))
    assert late.classes.request.tolist() == [[4.0]] and late.classes.run_time.tolist() == [60.0]
    again = make_plan(workload, fleet, LotesSettings(window_start=90, window_seconds=10))
    assert again.assignment.rate == late.assignment.rate
    with pytest.raises(InputError, match=r"no task arrives in the 5 s that begin 50 s after the first arrival"):
        make_plan(workload, fleet, LotesSettings(window_start=50, window_seconds=5))


# Constraints


def constrained(constraints):
    return staged([{"request": (2,)}, {"job": 1, "request": (2,), "constraints": constraints}],
                  [(0, 0, 10), (0, 1, 10), (1, 2, 10), (1, 3, 10)])


def test_a_class_has_rate_0_where_its_constraints_forbid_it():
    fleet = fleet_of((4,), (4,), (4,), attributes=[(0, "gpu", "yes")])
    plan = make_plan(constrained([("gpu", "=", "yes")]), fleet)
    assert plan.configurations.machines.tolist() == [2, 1]
    assert plan.configurations.of_machine.tolist() == [1, 0, 0]
    assert (plan.rate > 0).tolist() == [[True, False], [True, True]]
    assert plan.allocation.rate == pytest.approx(0.4)  # the constrained half: 2 at once on the one machine, 10 s each
    assert plan.bin_of_machine[0] not in plan.bin_of_machine[1:]
    assert plan.assignment.bins[plan.bin_of_machine].tolist() == [[0, 2], [2, 0], [2, 0]]
    shapes = find_shapes(constrained([("gpu", "=", "yes")]))
    assert plan.class_of(shapes).tolist() == [0, 1]
    assert plan.routes.tolist() == [[1, 0], [0, 1]]
    assert plan.devoted[:, :, 0].tolist() == [[8, 0], [0, 4]]


def test_constraints_that_every_machine_meets_tell_nothing_apart():
    fleet = fleet_of((4,), (4,), attributes=[(0, "gpu", "yes"), (1, "gpu", "yes")])
    plan = make_plan(constrained([("gpu", "=", "yes")]), fleet)
    assert plan.classes.share.tolist() == [1.0] and plan.configurations.machines.tolist() == [2]


def test_rare_sets_of_constraints_are_one_group():
    stages = [{"request": (1,), "job": row, "constraints": [("zone", "=", str(row))]} for row in range(4)]
    tasks = [(row, time, 10) for row in range(4) for time in range(4 - row)]
    fleet = fleet_of(*[(4,)] * 5, attributes=[(row, "zone", str(row)) for row in range(4)])
    plan = make_plan(staged(stages, tasks), fleet, LotesSettings(constraint_sets_max=2))
    assert plan.configurations.names == (
        "no constraint that matters", "zone = 0", "zone = 1", "other constraints")
    assert plan.configurations.machines.tolist() == [3, 1, 1]
    assert plan.classes.share == pytest.approx([0.4, 0.3, 0.3])
    assert plan.classes.nearest(np.array([[1] * 4]), np.arange(4)).tolist()[1:] == [0, 1, 2]
    assert plan.classes.nearest(np.array([[1]]), np.array([0]))[0] in (0, 1, 2)  # nobody came without constraints


def test_constraints_that_come_after_the_window_take_the_nearest_class_of_all():
    workload = constrained([("gpu", "=", "yes")])
    fleet = fleet_of((4,), (4,), attributes=[(0, "gpu", "yes")])
    plan = make_plan(workload, fleet, LotesSettings(window_seconds=2))
    assert plan.classes.share.tolist() == [1.0]
    assert plan.class_of(find_shapes(workload)).tolist() == [0, 0]


# Bad input, and input that is only odd


@pytest.mark.parametrize(("workload", "fleet", "said"), [
    (plain((0, 5, 9), (1, 5, 10)), fleet_of((8,)), "no machine can hold any of the window's 2 tasks"),
    (plain((0, 0, 1), (1, 0, 1)), fleet_of((8,)), "has run time 0: any rate of them could be served"),
    (plain((0, np.inf, 1)), fleet_of((8,)), "every task of the window runs for ever"),
    (plain((0, 5, 1)), fleet_of((8,), present=[False]), "no machine is there at time 0"),
    (plain((0, 5, 1)), fleet_of((8, 8), resources=TWO), "resources must be the same"),
    (plain((0, 5, 9, 1), (1, 5, 1, 9), resources=TWO), fleet_of((9, 1), (1, 9), resources=TWO),
     "the mean request of every class fits no machine"),
])
def test_what_no_plan_can_be_made_of_is_one_line(workload, fleet, said):
    with pytest.raises(InputError, match=said) as caught:
        make_plan(workload, fleet, LotesSettings(classes=1))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("setting", "value"), [
    ("classes", -1), ("classes", 65), ("window_seconds", 0.0), ("window_start", -1.0), ("bins", "none"),
    ("scaling", "log"), ("pairs", "some"), ("bins_max", 0), ("constraint_sets_max", 17),
    ("window_seconds", float("nan")),
])
def test_settings_are_refused_by_name(setting, value):
    with pytest.raises(InputError, match=f"^{setting}: must be"):
        LotesSettings(**{setting: value})


def test_a_class_that_no_machine_can_hold_is_left_out_and_said():
    plan = make_plan(plain((0, 5, 2), (1, 5, 2), (2, 5, 99)), fleet_of((8,)))
    assert plan.notes == ("1 tasks fit no machine: left out of the classes",)
    assert plan.allocation.rate == pytest.approx(0.8)
    split = make_plan(plain((0, 5, 9, 1), (1, 5, 1, 9), (2, 5, 1, 1), (3, 5, 1, 1), resources=TWO),
                      fleet_of((9, 1), (1, 9), resources=TWO), LotesSettings(classes=2))
    assert split.classes.share.size == 2
    if (split.rate == 0).all(axis=0).any():
        assert "its mean request fits no machine though its tasks do" in split.notes[0]


def test_a_fleet_of_one_machine():
    plan = make_plan(plain((0, 5, 2), (1, 5, 3), (2, 5, 3)), fleet_of((7,)))
    assert plan.assignment.machines.sum() == 1
    assert plan.assignment.rate <= plan.allocation.rate
    assert plan.bin_of_machine.tolist() != [NO_BIN]


def test_a_class_that_rounding_leaves_no_bin_is_said():
    tasks = [(row, seconds, cpu) for row in range(9) for seconds, cpu in ((100, 7), (10, 6))]
    plan = make_plan(plain(*tasks), fleet_of((7,)))
    assert plan.rounding_gap == 1.0
    assert plan.notes == ("rounding to whole machines leaves no bin to class 1: the plan as rounded serves it nowhere",)


def test_zero_length_runs_beside_others_get_a_bin_all_the_same():
    plan = make_plan(plain(*[(row, 0, 1) for row in range(5)], *[(row, 60, 4) for row in range(5)]),
                     fleet_of(*[(8,)] * 50))
    assert plan.classes.run_time[0] == pytest.approx(3e-5)
    assert plan.allocation.rate == pytest.approx(2 * 100 / 60, rel=1e-4)
    assert np.isfinite(plan.assignment.rate_rounded)


def test_a_resource_that_nobody_asks_for():
    plan = make_plan(plain((0, 10, 2, 0), (1, 10, 2, 0), resources=TWO), fleet_of((4, 9), (4, 0), resources=TWO))
    assert plan.allocation.rate == pytest.approx(0.4) and plan.assignment.rate == pytest.approx(0.4)
    assert not plan.allocation.delta[:, :, 1].any()


def test_endless_tasks_do_not_count_in_run_times():
    plan = make_plan(plain((0, 10, 2), (1, np.inf, 2)), fleet_of((4,)))
    assert plan.classes.run_time.tolist() == [10.0]
    assert "1 tasks run for ever: left out of the mean run times" in plan.notes


def test_machines_that_are_not_there_yet_emulate_nothing():
    plan = make_plan(plain((0, 10, 2)), fleet_of((4,), (4,), present=[True, False]))
    assert plan.configurations.machines.tolist() == [1]
    assert plan.bin_of_machine.tolist() == [0, NO_BIN]


# The shipped sample


@pytest.fixture(scope="module")
def google():
    return read_workload(sample_folder()), read_fleet(sample_folder() / "fleet")


def test_the_google_fleet_is_planned_for(google):
    plan = make_plan(*google)
    assert plan.configurations.machines.sum() == (plan.bin_of_machine != NO_BIN).sum() == 12_477
    assert 0 < plan.packing_gap < 0.05 and 0 <= plan.rounding_gap < 1e-3
    assert plan.routes.sum(axis=0) == pytest.approx(1)
    generated = make_plan(*google, GENERATED)
    assert generated.assignment.rate == pytest.approx(plan.assignment.rate, rel=1e-9)
    assert make_plan(*google, LotesSettings(classes=0)).classes.share.size == 4  # as in the paper
    counts = np.bincount(plan.bin_of_machine, minlength=len(plan.assignment.bins))
    assert counts.tolist() == plan.assignment.machines.tolist()


# The command line


@pytest.fixture
def site(tmp_path):
    (tmp_path / "W").mkdir()
    (tmp_path / "F").mkdir()
    plain((0, 100, 3), (1, 100, 3)).write(tmp_path / "W")
    fleet_of(*[(8,)] * 30).write(tmp_path / "F")
    return tmp_path / "W", tmp_path / "F"


def test_explain_lotes_shows_the_plan(run, site):
    code, out, _ = run("explain", "lotes", *site)
    assert code == 0
    assert "lambda*, with all machines of a configuration pooled: 2,880.0 jobs an hour." in out
    assert "With jobs in bins: 2,160.0, 25.000% less." in out
    assert "m0, m1, m2 and 27 more" in out


CUT_SHORT = "k-means was cut short, for requests are many and differ: it might have ended with other classes"


def test_classes_that_were_cut_short_are_said(run, site, monkeypatch):
    """By the plan, wherever it is shown; with steps enough nothing is said."""
    simulated = ("simulate", site[0], "--fleet", site[1], "--scheduler", "lotes", "--out")
    for command in (("explain", "lotes", *site), (*simulated, site[0].parent / "whole")):
        code, out, _ = run(*command)
        assert (code, "k-means" in out) == (0, False)
    workload, fleet = plain((0, 100, 1), (1, 100, 5)), read_fleet(site[1])
    assert make_plan(workload, fleet, LotesSettings(classes=2)).notes == ()
    monkeypatch.setattr(classes, "CELLS_SEEN_MAX", 0)
    assert make_plan(workload, fleet, LotesSettings(classes=2)).notes == (CUT_SHORT,)
    assert make_plan(workload, fleet, LotesSettings(classes=0)).notes == (CUT_SHORT,)
    workload.write(site[0])
    for command in (("explain", "lotes", *site), (*simulated, site[0].parent / "cut")):
        code, out, _ = run(*command)
        assert code == 0
        assert CUT_SHORT in " ".join(out.replace("│", " ").split())


def test_explain_lotes_takes_settings(run, site, tmp_path):
    (tmp_path / "lotes.toml").write_text('classes = 2\nbins = "generated"\n')
    assert run("explain", "lotes", *site, "--settings", tmp_path / "lotes.toml")[0] == 0
    (tmp_path / "wrong.toml").write_text("classes = 99\n")
    code, _, error = run("explain", "lotes", *site, "--settings", tmp_path / "wrong.toml")
    assert code == 2 and "classes: must be at most 64, not 99" in error


def test_explain_tells_lotes_from_a_run(run, site, tmp_path, monkeypatch):
    assert "has no fleet; name one: subak explain lotes" in run("explain", "lotes", site[0])[2]
    assert "no such file" in run("explain", "lotes", tmp_path / "nowhere")[2]
    assert "FLEET: goes only with lotes" in run("explain", "R", "1", "F")[2]
    assert "--classes: goes only with lotes" in run("explain", "R", "1", "--classes", "2")[2]
    monkeypatch.chdir(tmp_path)
    Path("lotes").mkdir()
    assert run("explain", "./lotes", "0")[0] == 2  # a folder, and no run
