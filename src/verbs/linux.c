// Linux as control plane, for people: twins, mirror, unsupported, verify. Control thread.
#include "verbs/inside.h"

#include <errno.h>

#define VERB_OF_LINUX(verb)                                                                        \
	json_t *verb_##verb(void *house, const json_t *params, struct complaint *why)              \
	{                                                                                          \
		complain(why, -ENOTSUP, "Linux is not the control plane here");                    \
		return NULL;                                                                       \
	}
VERB_OF_LINUX(twins)
VERB_OF_LINUX(mirror)
VERB_OF_LINUX(unsupported)
VERB_OF_LINUX(verify)
