"""Run a study on workers that Slurm starts: python on_slurm.py JOBS STUDY --sites FILE [options of `tare run`].

Each job is the worker of one site: the one that bears the name of the job's node. `pip install dask-jobqueue`.
"""

import subprocess
import sys

from dask_jobqueue.slurm import SLURMCluster

jobs, study, *options = sys.argv[1:]
sites = options[options.index("--sites") + 1]
with SLURMCluster(
    cores=1,
    memory="1 GB",
    walltime="10-00:00:00",
    worker_command="tare worker",
    worker_extra_args=["--sites", sites, "--site", '"$SLURMD_NODENAME"'],
    job_extra_directives=["--gres=site:1", "--requeue"],
) as cluster:
    cluster.scale(jobs=int(jobs))
    address = cluster.scheduler_address
    done = subprocess.run(["tare", "run", study, *options, "--scheduler", address, "--wait", "60"], check=False)
sys.exit(done.returncode)
