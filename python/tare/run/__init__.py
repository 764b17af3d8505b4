"""Plan → records: provision, drive, monitor, tear down, resume."""
