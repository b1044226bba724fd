"""`python -m sigmapca_cli` is `sigmapca`."""

from sigmapca_cli.cli import program

if __name__ == "__main__":
    program()
