"""What a study is refused for when it is read."""
