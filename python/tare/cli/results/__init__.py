"""Results: report, compare, check and explain what a store holds; import results; verify and repair a store."""
