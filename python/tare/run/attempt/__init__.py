"""One attempt at a run: prepare, drive, collect, tear down."""
