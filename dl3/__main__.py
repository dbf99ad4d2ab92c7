"""python -m dl3."""

from dl3.cli.outlet import fill_gaps

if __name__ == "__main__":
    fill_gaps()  # before anything is opened, and before anybody asks how wide the terminal is

    from dl3.cli.main import main

    main()
