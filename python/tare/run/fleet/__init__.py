"""Many sites at once: a block is a Dask task that takes a site as its resource; only tare writes the store."""
