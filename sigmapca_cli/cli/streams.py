"""Standard output and error as a terminal may see them: texts out of files cannot steer it."""

import re
from typing import Any, TextIO

from sigmapca_cli.system.text import printable

# What this program itself writes to a terminal: colours, and the cursor moves of progress bars and of --watch.
_OWN = re.compile(r"(\x1b\[[0-9;]*[mKHJABG]|\x1b\[\?25[lh])")


class Escaped:
    """A text stream whose control characters are written as escapes, but for line ends, tabs and returns.

    On a terminal the program's own sequences pass too. Titles, clipboard, links and other programs' sequences never do.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write `text`; the number of its characters."""
        if self.stream.isatty():
            pieces = _OWN.split(text)
            pieces[::2] = [printable(piece, keep="\n\r\t") for piece in pieces[::2]]
            self.stream.write("".join(pieces))
        else:
            self.stream.write(printable(text, keep="\n\r\t"))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def escaped(stream: Any) -> Any:
    """Return the stream as an `Escaped` one; one that is already stays as it is."""
    return stream if isinstance(stream, Escaped) else Escaped(stream)
