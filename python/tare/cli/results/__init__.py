"""Commands that report, compare, check and explain what a store holds, import results, and repair a store."""
