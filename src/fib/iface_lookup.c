// Finds a frame's interface by its tags, and checks an interface's additional MAC addresses.
// Worker.
#include "fib/ifaces.h"

static struct iface_slot gen_slot(const struct iface_slot *from)
{
	word16 word = word16_load(from);
	struct iface_slot slot;

	memcpy(&slot, &word, sizeof(slot));
	return slot;
}

uint16_t fib_iface_tagged(const struct fib_view *view, uint8_t port, const struct fib_tags *tags)
{
	const uint64_t key = iface_key(port, tags);
	const unsigned place = iface_place(key);

	for (unsigned i = 0; i < IFACE_SLOTS; i++) {
		struct iface_slot slot = gen_slot(&view->ifaces->slot[(place + i) % IFACE_SLOTS]);

		if (slot.key == key)
			return slot.iface;
		if (slot.key == SLOT_EMPTY)
			break;
	}
	return FIB_NO_IFACE_IN;
}

bool fib_iface_has_mac(const struct fib_view *view, uint16_t iface, const uint8_t mac[6])
{
	const uint64_t wanted = iface_mac_word(mac);
	const struct iface_macs *macs = &view->ifaces->macs[iface];

	for (unsigned i = 0; i < ARRAY_LEN(macs->mac); i++)
		if (__atomic_load_n(&macs->mac[i], __ATOMIC_RELAXED) == wanted)
			return true;
	return false;
}
