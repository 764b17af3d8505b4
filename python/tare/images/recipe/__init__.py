"""Images from a recipe: Debian packages and a few files."""
