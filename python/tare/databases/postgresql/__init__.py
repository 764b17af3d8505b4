"""PostgreSQL 15 and later."""
