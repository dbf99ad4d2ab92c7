// What the table was told of links. Control thread.
#include "fib/links.h"

#include "fib/table.h"

#include <errno.h>

void fib_link_delete(struct fib *fib, uint16_t link)
{
	if (link >= FIB_MAX_LINKS || !fib->hops.has_link[link])
		return;
	fib->hops.has_link[link] = false;
	hops_rewrite_link(&fib->hops, link);
}

const struct fib_link *fib_link(const struct fib *fib, uint16_t link)
{
	return link < FIB_MAX_LINKS && fib->hops.has_link[link] ? &fib->hops.link[link] : NULL;
}

uint16_t fib_link_tagged(const struct fib_view *view, uint8_t port, const struct fib_tags *tags)
{
	return FIB_NO_LINK_IN;
}

bool fib_link_has_mac(const struct fib_view *view, uint16_t link, const uint8_t mac[6])
{
	return false;
}

int fib_vrf_open(struct fib *fib, uint8_t vrf, struct complaint *why)
{
	return complain(why, -EINVAL, "there is no VRF %u; only the main one", vrf);
}

void fib_vrf_close(struct fib *fib, uint8_t vrf)
{
}

bool fib_vrf_is_open(const struct fib *fib, uint8_t vrf)
{
	return vrf == 0;
}
