"""The views of other monitors, as a report shows them."""
