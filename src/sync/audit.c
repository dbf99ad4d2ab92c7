// The slow audit. Control thread.
#include "sync/inside.h"

int audit_open(struct audit **out, struct sync *sync, struct complaint *why)
{
	return 0;
}

void audit_close(struct audit *audit)
{
}

void audit_tend(struct audit *audit)
{
}

void audit_info(const struct audit *audit, struct sync_info *out)
{
}

#include <errno.h>
int sync_explain(struct sync *sync, uint8_t vrf, const struct wire_addr *addr,
	struct sync_opinion *out, struct complaint *why)
{
	return complain(why, -ENOTSUP, "Linux cannot be asked by this build");
}

int sync_verify(struct sync *sync, struct sync_verification *how, struct complaint *why)
{
	return complain(why, -ENOTSUP, "Linux cannot be asked by this build");
}
