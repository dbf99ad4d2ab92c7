// The loop that one worker runs. Worker.
#pragma once

// `arg` is a struct worker; returns 0 once its `stop` is set and all it held is sent or dropped.
int worker_run(void *arg);
