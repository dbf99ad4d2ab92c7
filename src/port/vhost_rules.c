// A ring is set up by its size and its addresses, started by the file for its kicks, and ended by
// GET_VRING_BASE: a front-end that keeps to this order (QEMU, DPDK's virtio-user) is never refused.
#include "port/vhost_rules.h"

#include "base/bits.h"

#include <fcntl.h>
#include <linux/virtio_net.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define ENDED(why) "its peer was disconnected: " why "; use a driver that keeps to vhost-user"

// Of a ring, if buffers may be merged: the library then tries all slots for each frame.
enum { MOST_MERGED_SLOTS = 1024, NO_FILE = 1 << 8, INDEX_MASK = 0xff };
static const uint32_t MOST_SLOTS_IN_ALL = 2 * 64 * 1024;
static const uint64_t MOST_MEMORY = 1ull << 42; // mapped for one peer

struct number {
	uint32_t ring, value;
};

struct addresses {
	uint32_t ring, flags;
	uint64_t descriptors, used, available, log;
};

struct region {
	uint64_t physical, bytes, user, offset;
};

struct regions {
	uint32_t n, padding;
	struct region rows[VHOST_REGIONS];
};

void vhost_rules_begin(struct vhost_rules *rules, uint64_t offered, uint64_t offered_protocol)
{
	memset(rules, 0, sizeof(*rules));
	rules->offered = offered;
	rules->offered_protocol = offered_protocol;
}

static bool is_set_up(const struct vhost_ring *ring)
{
	return ring->slots || ring->has_addresses || ring->is_started;
}

static const char *check_features(struct vhost_rules *rules, uint64_t features)
{
	if (features & ~rules->offered)
		return ENDED("it has chosen features that it was not offered");
	for (unsigned i = 0; i < VHOST_RINGS && features != rules->features; i++)
		if (is_set_up(&rules->rings[i]))
			return ENDED("it has changed its features while it had rings");
	return NULL;
}

static bool is_in_one_region(const struct vhost_rules *rules, uint64_t begin, uint64_t bytes)
{
	for (unsigned i = 0; i < rules->n_regions; i++)
		if (begin >= rules->regions[i].begin && begin < rules->regions[i].end &&
			bytes <= rules->regions[i].end - begin)
			return true;
	return false;
}

static bool is_in_memory(const struct vhost_rules *rules, const struct vhost_ring *ring)
{
	const uint64_t n = ring->slots;

	return is_in_one_region(rules, ring->descriptors, 16 * n) &&
	       is_in_one_region(rules, ring->available, 6 + 2 * n) &&
	       is_in_one_region(rules, ring->used, 6 + 8 * n);
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static bool is_sound(const struct regions *table)
{
	uint64_t mapped = 0;

	for (unsigned i = 0; i < table->n; i++) {
		const struct region *r = &table->rows[i];

		if (!r->bytes || r->bytes > MOST_MEMORY || r->offset > MOST_MEMORY ||
			r->physical + r->bytes < r->bytes || r->user + r->bytes < r->bytes)
			return false;
		mapped += r->offset + r->bytes;
		for (unsigned k = 0; k < i; k++)
			if (overlap(r->user, r->bytes, table->rows[k].user, table->rows[k].bytes) ||
				overlap(r->physical, r->bytes, table->rows[k].physical,
					table->rows[k].bytes))
				return false;
	}
	return mapped <= MOST_MEMORY;
}

// The library aligns mappings to the file's blocks.
static bool holds(int file, const struct region *region)
{
	struct stat found;
	int flags = fcntl(file, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && !fstat(file, &found) &&
	       S_ISREG(found.st_mode) && found.st_blksize >= 4096 &&
	       !(found.st_blksize & (found.st_blksize - 1)) && found.st_size >= 0 &&
	       region->offset + region->bytes <= (uint64_t)found.st_size;
}

static void note_regions(struct vhost_rules *rules, const struct regions *table)
{
	rules->n_regions = table->n;
	for (unsigned i = 0; i < table->n; i++) {
		rules->regions[i].begin = table->rows[i].user;
		rules->regions[i].end = table->rows[i].user + table->rows[i].bytes;
	}
}

static const char *check_memory(struct vhost_rules *rules, const struct vhost_message *message)
{
	struct regions table = {0};

	if (message->n_bytes > sizeof(table))
		return ENDED("the table of its memory is too long");
	memcpy(&table, message->payload, message->n_bytes);
	if (message->n_bytes < offsetof(struct regions, rows) || table.n > VHOST_REGIONS ||
		message->n_bytes < offsetof(struct regions, rows) + table.n * sizeof(struct region))
		return ENDED("the table of its memory is too short");
	if (message->n_files != table.n)
		return ENDED("its memory has more or fewer files than regions");
	if (!is_sound(&table))
		return ENDED("regions of its memory overlap or have no valid size");
	for (unsigned i = 0; i < table.n; i++)
		if (!holds(message->files[i], &table.rows[i]))
			return ENDED("a file of its memory is too short, or not to be written to");
	note_regions(rules, &table);
	for (unsigned i = 0; i < VHOST_RINGS; i++) {
		struct vhost_ring *ring = &rules->rings[i];

		if (!ring->has_addresses || is_in_memory(rules, ring))
			continue;
		if (ring->is_started)
			return ENDED("a ring in use is not in its new memory");
		ring->has_addresses = false;
	}
	rules->n_regions = 0;
	return NULL;
}

static const char *check_size(struct vhost_rules *rules, struct vhost_ring *ring, uint32_t slots)
{
	bool merges = rules->features >> VIRTIO_NET_F_MRG_RXBUF & 1;
	uint32_t n = slots;

	if (slots < VHOST_LEAST_SLOTS || slots > VHOST_MOST_SLOTS || slots & (slots - 1))
		return "its peer was disconnected: the size of a ring is no power of two from 32 "
		       "to 16384; set another queue size there";
	if (merges && slots > MOST_MERGED_SLOTS)
		return "its peer was disconnected: a ring has more than 1024 slots while buffers "
		       "are mergeable; set another queue size there";
	for (unsigned i = 0; i < VHOST_RINGS; i++)
		n += &rules->rings[i] == ring ? 0 : rules->rings[i].slots;
	if (n > MOST_SLOTS_IN_ALL)
		return ENDED("its rings have more than 131072 slots in all");
	ring->slots = 0;
	ring->has_addresses = false;
	return NULL;
}

static const char *check_addresses(struct vhost_rules *rules, struct vhost_ring *ring,
	const struct addresses *at)
{
	if (!ring->slots)
		return ENDED("it has placed a ring before it told its size");
	ring->descriptors = at->descriptors;
	ring->available = at->available;
	ring->used = at->used;
	ring->has_addresses = false;
	if (at->descriptors % 16 || at->available % 2 || at->used % 4)
		return ENDED("the address of a ring is not aligned");
	if (!is_in_memory(rules, ring))
		return ENDED("a ring is not in its memory");
	return NULL;
}

static const char *check_event(struct vhost_rules *rules, const struct vhost_message *message)
{
	uint64_t value;

	memcpy(&value, message->payload, sizeof(value));
	struct vhost_ring *ring = &rules->rings[value & INDEX_MASK];

	if (message->n_files != !(value & NO_FILE))
		return ENDED("a ring has more or fewer than one file for its events");
	if (message->request != VHOST_MSG_SET_VRING_KICK)
		return NULL;
	if (!ring->slots || !ring->has_addresses)
		return ENDED("it has started a ring before it was set up");
	ring->is_started = true;
	return NULL;
}

// Of a message that has the number of a ring in front.
static const char *check_ring(struct vhost_rules *rules, const struct vhost_message *message)
{
	struct addresses at = {0};
	struct number number;

	memcpy(&number, message->payload, sizeof(number));
	if (number.ring >= VHOST_RINGS)
		return ENDED("the number of a ring is above 255");
	struct vhost_ring *ring = &rules->rings[number.ring];

	if (message->request == VHOST_MSG_SET_VRING_ENABLE)
		return NULL;
	if (message->request == VHOST_MSG_GET_VRING_BASE) {
		ring->slots = 0;
		ring->has_addresses = false;
		return NULL;
	}
	if (ring->is_started)
		return ENDED("it has changed a ring that is in use");
	if (number.ring >= 2 && !(rules->features >> VIRTIO_NET_F_MQ & 1))
		return ENDED("it has a second pair of rings without multiqueue");
	if (message->request == VHOST_MSG_SET_VRING_NUM)
		return check_size(rules, ring, number.value);
	if (message->request == VHOST_MSG_SET_VRING_BASE)
		return number.value > UINT16_MAX ? ENDED("the index of a ring is above 65535")
		                                 : NULL;
	memcpy(&at, message->payload, sizeof(at));
	return check_addresses(rules, ring, &at);
}

static const char *check_value(const struct vhost_rules *rules, uint32_t request, uint64_t value)
{
	switch (request) {
	case VHOST_MSG_SET_PROTOCOL_FEATURES:
		return value & ~rules->offered_protocol
		               ? ENDED("it has chosen protocol features that it was not offered")
		               : NULL;
	case VHOST_MSG_SET_STATUS:
		return value > UINT8_MAX ? ENDED("the status of its device is above 255") : NULL;
	case VHOST_MSG_NET_SET_MTU:
		return value < 68 || value > UINT16_MAX ? ENDED("its MTU is not from 68 to 65535")
		                                        : NULL;
	}
	return NULL;
}

// Payloads of a fixed length; 0: others.
static uint32_t bytes_of(uint32_t request)
{
	switch (request) {
	case VHOST_MSG_SET_VRING_ADDR:
		return sizeof(struct addresses);
	case VHOST_MSG_SET_FEATURES:
	case VHOST_MSG_SET_VRING_NUM:
	case VHOST_MSG_SET_VRING_BASE:
	case VHOST_MSG_GET_VRING_BASE:
	case VHOST_MSG_SET_VRING_KICK:
	case VHOST_MSG_SET_VRING_CALL:
	case VHOST_MSG_SET_VRING_ERR:
	case VHOST_MSG_SET_PROTOCOL_FEATURES:
	case VHOST_MSG_SET_VRING_ENABLE:
	case VHOST_MSG_NET_SET_MTU:
	case VHOST_MSG_SET_STATUS:
		return sizeof(uint64_t);
	}
	return 0;
}

const char *vhost_rules_check(struct vhost_rules *rules, const struct vhost_message *message)
{
	const uint32_t bytes = bytes_of(message->request);
	uint64_t value = 0;

	if (bytes && message->n_bytes != bytes)
		return ENDED("a message does not have its length");
	if (bytes)
		memcpy(&value, message->payload, sizeof(value));
	switch (message->request) {
	case VHOST_MSG_RESET_OWNER:
		return ENDED("it has sent RESET_OWNER, which is obsolete");
	case VHOST_MSG_SET_FEATURES:
		return check_features(rules, value);
	case VHOST_MSG_SET_MEM_TABLE:
		return check_memory(rules, message);
	case VHOST_MSG_SET_VRING_KICK:
	case VHOST_MSG_SET_VRING_CALL:
	case VHOST_MSG_SET_VRING_ERR:
		return check_event(rules, message);
	case VHOST_MSG_SET_VRING_NUM:
	case VHOST_MSG_SET_VRING_ADDR:
	case VHOST_MSG_SET_VRING_BASE:
	case VHOST_MSG_GET_VRING_BASE:
	case VHOST_MSG_SET_VRING_ENABLE:
		return check_ring(rules, message);
	default:
		return check_value(rules, message->request, value);
	}
}

void vhost_rules_note(struct vhost_rules *rules, const struct vhost_message *message)
{
	struct number number;
	struct regions table = {0};

	if (message->request == VHOST_MSG_SET_MEM_TABLE) {
		memcpy(&table, message->payload, MIN_OF(message->n_bytes, sizeof(table)));
		table.n = MIN_OF(table.n, (uint32_t)VHOST_REGIONS);
		note_regions(rules, &table);
		return;
	}
	if (!bytes_of(message->request))
		return;
	memcpy(&number, message->payload, sizeof(number));
	struct vhost_ring *ring = &rules->rings[number.ring % VHOST_RINGS];

	switch (message->request) {
	case VHOST_MSG_SET_FEATURES:
		memcpy(&rules->features, message->payload, sizeof(rules->features));
		break;
	case VHOST_MSG_SET_VRING_NUM:
		ring->slots = number.value;
		break;
	case VHOST_MSG_SET_VRING_ADDR:
		ring->has_addresses = true;
		break;
	case VHOST_MSG_GET_VRING_BASE:
		ring->is_started = false;
		break;
	}
}
