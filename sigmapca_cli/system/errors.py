"""Errors a user is meant to read: one line each, with the exit status a shell script can rely on."""


class SigmapcaError(Exception):
    """Something the user can act on: the message is one line that says what, where and what to do."""

    exit_status = 1


class InputError(SigmapcaError):
    """Bad usage, configuration or data: exit status 2."""

    exit_status = 2


class RunFailed(SigmapcaError):
    """A run that started and could not be completed: exit status 1."""

    exit_status = 1


class Stopped(SigmapcaError):
    """A run that was told to stop and can be resumed: exit status 75, or 130 when a person pressed Ctrl-C."""

    exit_status = 75

    def __init__(self, message: str, exit_status: int = 75) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class Signalled(BaseException):
    """A scheduler's signal where no step is guarded. It is no Exception: no reader takes it for damage of its file."""

    def __init__(self, message: str, exit_status: int = 75) -> None:
        super().__init__(message)
        self.exit_status = exit_status
