"""The Python interface: what `import sigmapca_cli as sp` offers, over the very code of the commands."""
