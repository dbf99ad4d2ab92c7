// The public face: sockets and mirror together. Control thread.
#include "sync/sync.h"

#include <errno.h>

int sync_open(struct sync **out, const struct sync_house *house, struct complaint *why)
{
	*out = NULL;
	return complain(why, -ENOTSUP, "Linux cannot be mirrored by this build");
}

void sync_close(struct sync *sync)
{
}

int sync_fd(const struct sync *sync)
{
	return -1;
}

bool sync_tend(struct sync *sync)
{
	return false;
}

void sync_info(const struct sync *sync, struct sync_info *out)
{
	*out = (struct sync_info){0};
}

const char *sync_link_name(const struct sync *sync, uint16_t link)
{
	return NULL;
}

const char *sync_vrf_name(const struct sync *sync, uint8_t vrf)
{
	return NULL;
}

int sync_vrf_find(const struct sync *sync, const char *name)
{
	return -ENOENT;
}

void sync_unsupported(struct sync *sync,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
}

int sync_explain(struct sync *sync, uint8_t vrf, const struct wire_addr *addr,
	struct sync_opinion *out, struct complaint *why)
{
	return complain(why, -ENOTSUP, "Linux cannot be mirrored by this build");
}

int sync_verify(struct sync *sync, struct sync_verification *how, struct complaint *why)
{
	return complain(why, -ENOTSUP, "Linux cannot be mirrored by this build");
}
