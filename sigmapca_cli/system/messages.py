"""What the program says beside its results."""


def show_warnings() -> None:
    """Warnings of the program go to standard error, one line each."""
    import logging

    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("sigmapca: warning: %(message)s"))
    logger = logging.getLogger("sigmapca")
    logger.addHandler(handler)
    logger.propagate = False
