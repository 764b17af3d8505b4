"""cassandra-stress 3.11."""
