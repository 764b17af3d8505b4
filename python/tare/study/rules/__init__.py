"""Rules that a study is checked against when it is read."""
