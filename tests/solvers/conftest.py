"""This folder's helper module."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # behind the others: this file, too, is called conftest
