"""`python -m sigmapca_cli` is `sigmapca`."""

from sigmapca_cli.cli import main

if __name__ == "__main__":
    main()
