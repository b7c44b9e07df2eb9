"""What the README claims, re-runnable: each script prints its conditions, a table and one line of JSON."""
