// VLAN interfaces by port and tags: how the control thread changes the hash, and how workers search
// it.
#include "iface/slots.h"

#include "base/word16.h"

static void write_slot(struct iface_table *table, unsigned at, struct iface_slot slot)
{
	word16 word;

	memcpy(&word, &slot, sizeof(word));
	word16_store(&table->slot[at], word);
}

// The slot of a key, or the first one free for it if there is none.
static unsigned find_slot(const struct iface_table *table, struct slot_key key)
{
	unsigned at = slot_place(key), first_left = IFACE_SLOTS;

	for (unsigned i = 0; i < IFACE_SLOTS; i++, at = (at + 1) % IFACE_SLOTS) {
		const struct iface_slot *slot = &table->slot[at];
		if (slot_has(slot, key))
			return at;
		if (slot->tags == SLOT_LEFT && first_left == IFACE_SLOTS)
			first_left = at;
		if (slot->tags == SLOT_EMPTY)
			return first_left == IFACE_SLOTS ? at : first_left;
	}
	return first_left; // no slot is empty; at most half are in use
}

uint16_t slots_find(const struct iface_table *table, struct slot_key key)
{
	const struct iface_slot *slot = &table->slot[find_slot(table, key)];

	return slot_has(slot, key) ? slot->iface : IFACE_NONE;
}

void slots_put(struct iface_table *table, struct slot_key key, uint16_t iface)
{
	write_slot(table, find_slot(table, key), (struct iface_slot){key.tags, key.port, iface});
}

// A search ends at an empty slot, so deleted slots before one may become empty, too.
void slots_remove(struct iface_table *table, struct slot_key key)
{
	unsigned at = find_slot(table, key);

	if (table->slot[(at + 1) % IFACE_SLOTS].tags != SLOT_EMPTY) {
		write_slot(table, at, (struct iface_slot){.tags = SLOT_LEFT});
		return;
	}
	write_slot(table, at, (struct iface_slot){.tags = SLOT_EMPTY});
	for (unsigned before = (at - 1) % IFACE_SLOTS; table->slot[before].tags == SLOT_LEFT;
		before = (before - 1) % IFACE_SLOTS)
		write_slot(table, before, (struct iface_slot){.tags = SLOT_EMPTY});
}

static struct iface_slot read_slot(const struct iface_slot *from)
{
	word16 word = word16_load(from);
	struct iface_slot slot;

	memcpy(&slot, &word, sizeof(slot));
	return slot;
}

uint16_t iface_tagged(const struct iface_view *view, uint16_t port, const struct iface_tags *tags)
{
	const struct slot_key key = slot_key(port, tags);
	const unsigned place = slot_place(key);

	for (unsigned i = 0; i < IFACE_SLOTS; i++) {
		struct iface_slot slot = read_slot(&view->slot[(place + i) % IFACE_SLOTS]);

		if (slot_has(&slot, key))
			return slot.iface;
		if (slot.tags == SLOT_EMPTY)
			break;
	}
	return IFACE_NONE;
}
