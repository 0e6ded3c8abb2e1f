"""What the fork server loads: of what a run needs, all that does not load polars, which has threads from then on."""
import gc

from subak.collection import end_without_collection, without_collection

with without_collection():
    import ddsketch  # noqa: F401  (loading is all that is wanted)

    import subak.experiment.scenario
    import subak.experiment.study.document
    import subak.federation.megha.roles
    import subak.federation.pigeon
    import subak.federation.sampling.dodoor
    import subak.federation.sampling.eagle
    import subak.placement.fair
    import subak.placement.linear_program
    import subak.placement.rigid.backfill
    import subak.policy  # noqa: F401

gc.freeze()  # looking for garbage among it would copy it for each process
end_without_collection()
