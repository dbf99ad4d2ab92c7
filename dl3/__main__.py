"""python -m dl3."""

import os
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))  # modules are imported without a traceback

    from dl3.cli.outlet import fill_gaps

    fill_gaps()  # before anything is opened, and before anybody asks how wide the terminal is

    from dl3.cli.main import main

    main()
