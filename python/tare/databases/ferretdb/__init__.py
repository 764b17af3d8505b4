"""FerretDB: MongoDB's protocol in front of PostgreSQL."""
