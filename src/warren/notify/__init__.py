"""Who hears of a group in trouble, and in which words."""
