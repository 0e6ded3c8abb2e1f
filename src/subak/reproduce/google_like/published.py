"""The paper's numbers (Da Costa, Grange, De Courchelle, 2016): Tables I to VII and section IV."""
GROUPS = ("Free", "Normal", "Production", "Monitoring")
GROUP_BOUNDS = (1, 8, 9)  # the last priority of each group but the last
EVENT_COUNTS = {  # Table I: tasks by their number of events; 9 stands for 9 and more
    1: 248, 2: 1_093_992, 3: 24_258_907, 4: 19_378, 5: 17_215, 6: 8_510, 7: 5_093, 8: 3_028, 9: 18_360,
}
ENDINGS = {"FINISH": 17_775_284, "KILL": 6_381_906, "FAIL": 86_348, "other": 15_369}  # Table II, of three events
CLASSES = {0: 20_317_398, 1: 3_327_283, 2: 533_330, 3: 49_614}  # Table III
PRIORITIES = {  # Table IV
    0: 5_701_546, 1: 2_357_274, 2: 1_078_476, 3: 1_027, 4: 13_975_078, 5: 104, 6: 633_445, 7: 0, 8: 249_932,
    9: 230_164, 10: 579, 11: 0,
}
GROUP_COUNTS = {"Free": 8_058_820, "Normal": 15_938_062, "Production": 230_164, "Monitoring": 579}  # Table V
# Tables VI and VII: count, average, standard deviation, median, in seconds
MAKESPANS: dict[str, dict[str, tuple[int, float, float, float]]] = {
    "FINISH": {
        "Free": (5_081_775, 1937.9, 4518.7, 345.7), "Normal": (12_677_000, 1600.3, 5231.4, 492.6),
        "Production": (49_190, 493.9, 1955.1, 39.1), "All": (17_807_965, 1693.6, 5034.5, 448.9),
    },
    "KILL": {
        "Free": (2_977_045, 5195.6, 24_336.4, 595.4), "Normal": (3_261_062, 2688.5, 19_468.9, 213.9),
        "Production": (180_974, 148_424.4, 294_182.3, 31_429.4), "Monitoring": (579, 388_232.5, 579_101.9, 71_831.6),
        "All": (6_419_660, 7994.3, 59_363.8, 333.8),
    },
}
LAWS = {  # section IV-C: mu, sigma and KS of the log-normal; coefficient, scale and KS of the Pareto law
    "FINISH": {"mu": 6.25, "sigma": 1.42, "log-normal KS": 0.057, "Pareto coefficient": 0.113, "Pareto scale": 0.073,
               "Pareto KS": 0.5},
    "KILL": {"mu": 6.14, "sigma": 2.06, "log-normal KS": 0.064, "Pareto coefficient": 0.0916, "Pareto scale": 0.0077,
             "Pareto KS": 0.49},
}
RUN_SECONDS = {"FINISH": 13e9, "KILL": 20e9}  # section II: of all tasks that ended so
MONTH_S = 29 * 86_400.0  # of the whole trace
GAP_MEAN, GAP_SHAPE = 0.052, 5.0  # section IV-A; Fig. 8 draws with shape 4
