// The main loop of one worker. Worker.
#pragma once

// `arg` is a struct worker. Returns 0 after its `stop` flag is set and every packet that it held
// has been sent or dropped.
int worker_run(void *arg);
