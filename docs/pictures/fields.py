"""Makes the pictures of docs/fields.md: python docs/pictures/fields.py

Runs the commands of the page in an empty folder, and keeps one picture of each section.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).resolve().parent
PAGE = PICTURES.parent / "fields.md"
SECTION = re.compile(r"```sh\n(?P<commands>.*?)```\s+!\[[^\]]*\]\(pictures/(?P<name>[a-z]+)\.png\)", re.S)


def main() -> None:
    """Run each section that has a picture of its own."""
    for section in SECTION.finditer(PAGE.read_text("utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            drawn = None
            for line in section["commands"].splitlines():
                done = subprocess.run(
                    [sys.executable, "-m", "sigmapca_cli", *words(line)],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                )
                if done.returncode:
                    sys.exit(f"{line}\n{done.stderr}")
                if " plot " in line and drawn is None:
                    drawn = next(name for name in done.stdout.splitlines() if name.endswith(".png"))
            shutil.copy(Path(folder) / str(drawn), PICTURES / f"{section['name']}.png")


def words(line: str) -> list[str]:
    """Return the arguments of one command line."""
    import shlex

    return shlex.split(line, comments=True)[1:]


if __name__ == "__main__":
    main()
