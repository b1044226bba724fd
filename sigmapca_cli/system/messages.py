"""What the program says beside its results."""


def show_warnings() -> None:
    """Warnings of the program go to standard error, one line each, and each line once: halves share their file."""
    import logging

    handler, said = logging.StreamHandler(), set[str]()

    def is_new(record: logging.LogRecord) -> bool:
        known = len(said)
        said.add(record.getMessage())
        return len(said) > known

    handler.setLevel(logging.WARNING)
    handler.addFilter(is_new)
    handler.setFormatter(logging.Formatter("sigmapca: warning: %(message)s"))
    logger = logging.getLogger("sigmapca")
    logger.addHandler(handler)
    logger.propagate = False
