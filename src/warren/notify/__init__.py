"""Delivers notifications: leadership, templates, and one sender per class of notifier."""
