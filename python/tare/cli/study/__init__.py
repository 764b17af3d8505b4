"""Studies: write, plan, run and calibrate them, with the progress and the page that are shown meanwhile."""
