from sigmapca_cli import nn
from sigmapca_cli.api.listing import runs as runs
from sigmapca_cli.api.run import Run as Run
from sigmapca_cli.api.training import train as train
from sigmapca_cli.sklearn import SigmaPCA as SigmaPCA
from sigmapca_cli.system.errors import InputError as InputError
from sigmapca_cli.system.errors import RunFailed as RunFailed
from sigmapca_cli.system.errors import SigmapcaError as SigmapcaError
from sigmapca_cli.system.errors import Stopped as Stopped

__version__: str
__all__ = ["InputError", "Run", "RunFailed", "SigmaPCA", "SigmapcaError", "Stopped", "nn", "runs", "train"]
