"""The Google-like workload model (Da Costa, Grange, De Courchelle, 2016) and the small models around it."""
