"""Search algorithms. Pure: they return the next load or the result, independent of clocks, sockets and how trials are
run.
"""
