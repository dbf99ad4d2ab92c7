// Rings that lie: Virtual I/O Device 1.1, 2.6 and 2.7.
#include "hostile.h"

#include <string.h>

// UDP from and to our own address behind dl3d's port.
static void write_frame(uint8_t *at, unsigned bytes)
{
	static const uint8_t rest[] = {2, 0, 0, 0, 9, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17,
		0x54, 0xbb, 10, 0, 9, 2, 10, 0, 9, 3, 0, 9, 0, 9, 0, 26, 0, 0};

	memset(at, 0, VIRTIO_HEADER);
	if (one_in(4))
		for (unsigned i = 0; i < VIRTIO_HEADER; i++)
			at[i] = any();
	memcpy(at + VIRTIO_HEADER, me.mac, sizeof(me.mac));
	memcpy(at + VIRTIO_HEADER + sizeof(me.mac), rest, sizeof(rest));
	if (one_in(4) && bytes)
		at[VIRTIO_HEADER + below(bytes)] = any();
}

static void fill_descriptor(struct vring_desc *desc, unsigned vring, unsigned n)
{
	uint64_t at = FRAMES_AT + below((MEMORY - FRAMES_AT) / 2048) * 2048;

	*desc = (struct vring_desc){guest_address(at), 60 + VIRTIO_HEADER, 0, below(n)};
	if (vring % 2 == 0) {
		desc->flags = VRING_DESC_F_WRITE;
		desc->len = 2048;
	} else {
		write_frame(me.memory + at, 60);
	}
	switch (below(me.health)) {
	case 0:
		desc->addr = one_in(2) ? edge() : guest_address(MEMORY - below(64));
		break;
	case 1:
		desc->len = one_in(2) ? edge() : below(70000);
		break;
	case 2:
		desc->flags = below(8);
		break;
	case 3: // a chain, and often a loop
		desc->flags |= VRING_DESC_F_NEXT;
		desc->next = one_in(4) ? edge() : below(n);
		break;
	case 4:
		desc->flags = VRING_DESC_F_INDIRECT | (one_in(8) ? any() : 0);
		desc->addr = guest_address(TABLES_AT + below(TABLES_BYTES));
		desc->len = one_in(3) ? edge() : 16 * below(600);
		break;
	}
	me.n_chains++;
}

static void fill_tables(void)
{
	struct vring_desc *tables = (struct vring_desc *)(me.memory + TABLES_AT);

	for (unsigned i = 0; i < TABLES_BYTES / sizeof(*tables); i++)
		fill_descriptor(tables + i, 1, 600);
}

static void fill_split(unsigned vring)
{
	uint8_t *ring = me.memory + RINGS_AT + vring * RING_BYTES;
	struct vring_desc *desc = (struct vring_desc *)ring;
	struct vring_avail *avail = (struct vring_avail *)(ring + AVAIL_AT);
	uint16_t *used_idx = (uint16_t *)(ring + USED_AT + 2);
	unsigned n = one_in(4) ? me.n_slots : 1 + below(me.n_slots);

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = below(me.n_slots);

		fill_descriptor(desc + slot, vring, me.n_slots);
		avail->ring[(avail->idx + i) % me.n_slots] = one_in(50) ? any() : slot;
	}
	avail->flags = below(2);
	if (one_in(20))
		*used_idx = any();
	// Behind the used index, a ring ahead, or anywhere.
	__atomic_store_n(&avail->idx, one_in(20) ? any() : avail->idx + n, __ATOMIC_RELEASE);
}

static void fill_packed(unsigned vring)
{
	struct vring_packed_desc *ring =
		(struct vring_packed_desc *)(me.memory + RINGS_AT + vring * RING_BYTES);
	struct vring_desc desc;

	for (unsigned i = 0; i < me.n_slots; i++) {
		fill_descriptor(&desc, vring, me.n_slots);
		ring[i].addr = desc.addr;
		ring[i].len = desc.len;
		ring[i].id = desc.next;
		__atomic_store_n(&ring[i].flags,
			(desc.flags & 7) | (one_in(2) ? 1 << 7 : 1 << 15) |
				(one_in(9) ? any() & 0x8080 : 0),
			__ATOMIC_RELEASE);
	}
}

// A descriptor that cannot be read stops its ring, so there must be some in good order.
void rings_fill(void)
{
	static const unsigned healths[] = {10, 100, 1000, 1u << 20};

	me.health = healths[below(4)];
	if (one_in(8))
		fill_tables();
	for (unsigned i = 0; i < me.n_vrings; i++)
		if (me.is_packed)
			fill_packed(i);
		else
			fill_split(i);
}

void rings_scribble(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		unsigned vring = below(me.n_vrings);
		uint8_t *ring = me.memory + RINGS_AT + vring * RING_BYTES;
		volatile struct vring_desc *at = (struct vring_desc *)ring + below(me.n_slots);
		struct vring_desc new;

		fill_descriptor(&new, vring, me.n_slots);
		at->addr = new.addr;
		at->len = new.len;
		at->flags = me.is_packed ? (new.flags & 7) | 1 << 7 : new.flags;
		at->next = new.next;
		if (one_in(64))
			++*(volatile uint16_t *)(ring + AVAIL_AT + 2);
	}
	me.n_scribbles++;
}
