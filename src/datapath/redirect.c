// Packets that leave by their input interface: Linux sees a limited number of them so that it can
// send redirects (RFC 1812, 5.2.7.2; RFC 4861, 8). The others are forwarded. Worker.
#include "datapath/steps.h"

#include <rte_cycles.h>

enum { TAG = 4 };

// A token bucket, stored as a theoretical arrival time (GCRA, ITU-T I.371).
static bool may_punt(struct worker *w, uint64_t now)
{
	uint64_t cycles = __atomic_load_n(&w->tap->redirect_cycles, __ATOMIC_RELAXED);
	uint64_t burst = __atomic_load_n(&w->tap->redirect_burst, __ATOMIC_RELAXED);
	bool has_limit = cycles > 0;

	if (cycles == UINT64_MAX) // redirects are off
		return false;
	if (has_limit && rte_ring_full(w->tap->punt[CLASS_REDIRECT]))
		return false;
	w->redirects_due = MAX_OF(w->redirects_due, now);
	if (w->redirects_due - now > (burst - 1) * cycles)
		return false;
	w->redirects_due += cycles;
	return true;
}

// The tags that a packet arrived with, except priority tags (VID 0).
static struct iface_tags tags_in(const struct burst *b, uint16_t i)
{
	const uint8_t *tag = rte_pktmbuf_mtod(b->mbuf[i], const uint8_t *) + 12;
	struct iface_tags tags = {{0}};
	uint8_t *to = tags.bytes;

	for (uint16_t left = burst_tag_bytes(b, i); left; left -= TAG, tag += TAG) {
		uint8_t vid_high = tag[2] & 0x0f;

		if (!(vid_high | tag[3]))
			continue;
		memcpy(to, (uint8_t[TAG]){tag[0], tag[1], vid_high, tag[3]}, TAG);
		to += TAG;
	}
	return tags;
}

// The port is already known to be the same: checks that the packet leaves with the tags that it
// arrived with.
static bool has_same_tags(const struct burst *b, uint16_t i)
{
	struct iface_tags came = tags_in(b, i), leaves = fib_tags_load(b->view, b->hop[i]);

	return load64(came.bytes) == load64(leaves.bytes);
}

// Whether some packet leaves through its input port.
static bool some_return(const struct burst *b)
{
	bool found = false;

	if (b->has_one_port)
		return b->port[0] == b->in_port;
	for (uint16_t i = 0; i < b->n; i++)
		found |= b->port[i] == b->in_port;
	return found;
}

static __attribute__((noinline)) void punt_some(struct worker *w, struct burst *b)
{
	uint64_t now = rte_rdtsc(), kept = 0;

	for (uint16_t i = 0; i < b->n; i++) {
		bool returns = b->redirect_mask >> i & 1 && burst_port(b, i) == b->in_port &&
		               has_same_tags(b, i);

		if (returns && may_punt(w, now))
			burst_drop(w, b, i, VERDICT_REDIRECT);
		else
			kept |= 1ull << i;
	}
	burst_keep(b, kept);
}

void datapath_redirect(struct worker *w, struct burst *b)
{
	if (unlikely(some_return(b)))
		punt_some(w, b);
}
