"""The knowledge base as a static site, for any web server: no script, style or font comes from elsewhere."""
