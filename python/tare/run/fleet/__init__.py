"""Many sites at once: a block is a task of Dask's, a site the resource that it takes, and tare the only writer."""
