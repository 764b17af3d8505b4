"""Commands that write, plan, run and calibrate studies, with their progress display and live page."""
