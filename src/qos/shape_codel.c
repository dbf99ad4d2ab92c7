// See shape_codel.h.
#include "qos/shape_codel.h"

#include "base/bits.h"

struct shape_packet *queue_pop(struct shape_queue *queue)
{
	struct shape_packet *packet = queue->head;

	if (!packet)
		return NULL;
	queue->head = packet->next;
	queue->bytes -= packet->bytes;
	return packet;
}

static void push_back(struct shape_queue *queue, struct shape_packet *packet)
{
	packet->next = queue->head;
	queue->tail = queue->head ? queue->tail : packet;
	queue->head = packet;
	queue->bytes += packet->bytes;
}

// 1 / sqrt(x) of x in [1, 4), in units of 1 >> 32, by Newton's method from a line: its error of
// 14 % becomes 3 %, 0.2 %, 4e-6 and 3e-11, and is always below the root.
static uint64_t inverse_root(uint64_t x)
{
	uint64_t y = (115ull << 32) / 100 - x * 17 / 100;

	for (unsigned i = 0; i < 4; i++) {
		const uint64_t square = (uint64_t)((unsigned __int128)y * y >> 32);
		const uint64_t part = (uint64_t)((unsigned __int128)square * x >> 32);

		y = (uint64_t)((unsigned __int128)y * ((3ull << 32) - part) >> 33);
	}
	return y;
}

uint64_t codel_step(uint64_t interval, uint32_t count)
{
	const unsigned half = (unsigned)(31 - __builtin_clz(count)) / 2;
	const uint64_t root = inverse_root(((uint64_t)count << 32) >> 2 * half);

	return (uint64_t)((unsigned __int128)interval * root >> (32 + half));
}

// RFC 8289, section 5.4 (dodequeue): whether `packet`, the one just removed, may be dropped.
static bool may_drop(struct shape_queue *queue, const struct codel_terms *terms,
	const struct shape_packet *packet, uint64_t now)
{
	struct codel *codel = &queue->codel;

	if (!packet || now - packet->since < terms->target || queue->bytes <= terms->mtu) {
		codel->first_above = 0;
		return false;
	}
	if (!codel->first_above) {
		codel->first_above = now + terms->interval;
		return false;
	}
	return now >= codel->first_above;
}

// Whether a packet is marked in place of being dropped.
static bool is_marked(const struct codel_terms *terms, struct shape_packet *packet)
{
	packet->is_marked = terms->marks && packet->has_ecn;
	return packet->is_marked;
}

// Goes on dropping while it is time for it.
static struct shape_packet *drop_more(struct shape_queue *queue, const struct codel_terms *terms,
	uint64_t now, struct shape_drops *drops)
{
	struct codel *codel = &queue->codel;
	struct shape_packet *packet = queue_pop(queue);

	queue->is_dropping = may_drop(queue, terms, packet, now);
	while (queue->is_dropping && now >= codel->drop_next) {
		if (is_marked(terms, packet)) {
			codel->drop_next += codel_step(terms->interval, ++codel->count);
			return packet;
		}
		if (drops_are_full(drops)) {
			push_back(queue, packet);
			return NULL;
		}
		drops_add(drops, packet, SHAPE_DROP_CODEL);
		codel->count++;
		packet = queue_pop(queue);
		queue->is_dropping = may_drop(queue, terms, packet, now);
		if (queue->is_dropping)
			codel->drop_next += codel_step(terms->interval, codel->count);
	}
	return packet;
}

// RFC 8289, section 5.5 (deque).
struct shape_packet *codel_take(struct shape_queue *queue, const struct codel_terms *terms,
	uint64_t now, struct shape_drops *drops)
{
	struct codel *codel = &queue->codel;

	if (queue->is_dropping)
		return drop_more(queue, terms, now, drops);
	struct shape_packet *packet = queue_pop(queue);
	if (!may_drop(queue, terms, packet, now))
		return packet;
	if (!is_marked(terms, packet)) {
		if (drops_are_full(drops)) {
			push_back(queue, packet);
			return NULL;
		}
		drops_add(drops, packet, SHAPE_DROP_CODEL);
		packet = queue_pop(queue);
		may_drop(queue, terms, packet, now);
	}
	queue->is_dropping = true;
	const uint32_t delta = codel->count - codel->last_count;
	const bool was_recent = (int64_t)(now - codel->drop_next) < (int64_t)(16 * terms->interval);
	codel->count = delta > 1 && was_recent ? delta : 1;
	codel->drop_next = now + codel_step(terms->interval, codel->count);
	codel->last_count = codel->count;
	return packet;
}
