// A plugin for dl3d (EAL option -d), used only by tests: it ends the process as soon as EAL loads
// it.
#include <stdlib.h>

__attribute__((constructor)) static void leave(void)
{
	exit(0);
}
