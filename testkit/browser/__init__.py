"""Headless Chromium, the console that it opens, and the accessibility checks of its pages."""
