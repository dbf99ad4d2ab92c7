// A frame's link by its tags, and a link's further MAC addresses. Lane.
#include "fib/links.h"

static struct link_slot load_slot(const struct link_slot *from)
{
	word16 word = word16_load(from);
	struct link_slot slot;

	memcpy(&slot, &word, sizeof(slot));
	return slot;
}

uint16_t fib_link_tagged(const struct fib_view *view, uint8_t port, const struct fib_tags *tags)
{
	const uint64_t key = link_key(port, tags);
	const unsigned place = link_place(key);

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link_slot slot = load_slot(&view->links->slot[(place + i) % LINK_SLOTS]);

		if (slot.key == key)
			return slot.link;
		if (slot.key == SLOT_EMPTY)
			break;
	}
	return FIB_NO_LINK_IN;
}

bool fib_link_has_mac(const struct fib_view *view, uint16_t link, const uint8_t mac[6])
{
	const uint64_t wanted = link_mac_word(mac);
	const struct link_macs *macs = &view->links->macs[link];

	for (unsigned i = 0; i < ARRAY_LEN(macs->mac); i++)
		if (__atomic_load_n(&macs->mac[i], __ATOMIC_RELAXED) == wanted)
			return true;
	return false;
}
