// Decodes MPLS: labels that routes of IP push, and routes of received labels. Pure.
#include "netlink/decode_inside.h"

#include <endian.h>
#include <linux/lwtunnel.h>
#include <linux/mpls_iptunnel.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define AT(noun, field) offsetof(struct event_##noun, field)

enum { LABEL = 4, LABEL_SHIFT = 12, LABEL_BITS = 20 };

static uint32_t label_of(const uint8_t *bytes)
{
	uint32_t word_be;

	memcpy(&word_be, bytes, sizeof(word_be));
	return be32toh(word_be) >> LABEL_SHIFT;
}

// More labels than a hop can have are left out: it has none then, which is not supported.
static bool take_labels(void *out, const struct piece *value)
{
	struct event_hop *hop = out;
	const unsigned n = value->n / LABEL;

	if (value->n % LABEL || !n)
		return false;
	hop->n_labels = n > EVENT_MAX_LABELS ? 0 : n;
	hop->has_encap |= n > EVENT_MAX_LABELS;
	for (unsigned i = 0; i < hop->n_labels; i++)
		hop->label[i] = label_of((const uint8_t *)value->bytes + LABEL * i);
	return true;
}

// 0: the packet's TTL.
static bool take_ttl(void *out, const struct piece *value)
{
	if (value->n < sizeof(uint8_t))
		return false;
	((struct event_hop *)out)->label_ttl = *(const uint8_t *)value->bytes;
	return true;
}

static const struct want want_encap[] = {
	[MPLS_IPTUNNEL_DST] = {WANT_TAKE, .take = take_labels},
	[MPLS_IPTUNNEL_TTL] = {WANT_TAKE, .take = take_ttl},
};
static const struct wants wants_encap = WANTS(want_encap);

// What another encapsulation has there is not MPLS, and no error.
bool labels_take_encap(void *hop, const struct piece *value)
{
	struct event_hop read = {.label_ttl = -1};

	if (!attrs_take(&wants_encap, value, &read))
		read.n_labels = 0;
	((struct event_hop *)hop)->n_labels = read.n_labels;
	((struct event_hop *)hop)->label_ttl = read.label_ttl;
	memcpy(((struct event_hop *)hop)->label, read.label, sizeof(read.label));
	return true;
}

void labels_settle(struct event_hop *hop)
{
	const bool is_mpls = hop->encap_type == LWTUNNEL_ENCAP_MPLS && hop->n_labels;

	hop->has_encap |= hop->encap_type && !is_mpls;
	if (is_mpls)
		return;
	hop->n_labels = 0;
	hop->label_ttl = 0;
	memset(hop->label, 0, sizeof(hop->label));
}

// --- routes of labels

// A neighbour that is given by its MAC address is left to Linux.
static bool take_via(void *out, const struct piece *value)
{
	const struct rtvia *via = value->bytes;
	struct event_hop *hop = out;

	if (value->n >= sizeof(via->rtvia_family) && !read_family(via->rtvia_family)) {
		hop->has_encap = true;
		return true;
	}
	return read_via(&hop->via, value);
}

static const struct want want_hop[] = {
	[RTA_VIA] = {WANT_TAKE, .take = take_via},
	[RTA_NEWDST] = {WANT_TAKE, .take = take_labels},
};
static const struct wants wants_hop = WANTS(want_hop);

// While attributes are parsed, the single hop is kept apart from those of RTA_MULTIPATH.
struct label_draft {
	struct event_label *label;
	struct event_hop single;
	bool has_label;
};

static bool take_dst(void *out, const struct piece *value)
{
	struct label_draft *draft = out;

	if (value->n < LABEL)
		return false;
	draft->has_label = true;
	draft->label->label = label_of(value->bytes);
	return true;
}

static bool take_single_via(void *out, const struct piece *value)
{
	return take_via(&((struct label_draft *)out)->single, value);
}

static bool take_single_labels(void *out, const struct piece *value)
{
	return take_labels(&((struct label_draft *)out)->single, value);
}

static bool take_propagates(void *out, const struct piece *value)
{
	if (value->n < sizeof(uint8_t))
		return false;
	((struct label_draft *)out)->label->propagates = *(const uint8_t *)value->bytes != 0;
	return true;
}

static bool take_multipath(void *out, const struct piece *value)
{
	struct event_label *label = ((struct label_draft *)out)->label;
	struct hop_list list = {label->hop, &label->n_hops, &label->too_many_hops};

	return read_hops(value, &wants_hop, &list);
}

static const struct want want_label[] = {
	[RTA_DST] = {WANT_TAKE, .take = take_dst},
	[RTA_OIF] = {WANT_U32, .at = offsetof(struct label_draft, single.ifindex)},
	[RTA_VIA] = {WANT_TAKE, .take = take_single_via},
	[RTA_NEWDST] = {WANT_TAKE, .take = take_single_labels},
	[RTA_MULTIPATH] = {WANT_TAKE, .take = take_multipath},
	[RTA_TTL_PROPAGATE] = {WANT_TAKE, .take = take_propagates},
};
static const struct wants wants_label = WANTS(want_label);

enum decode_result read_label(const struct nlmsghdr *message, struct event *out)
{
	const struct rtmsg *head = NLMSG_DATA(message);
	struct event_label *label = &out->label;
	struct label_draft draft = {.label = label, .single = {.weight = 1}};

	memset(label, 0, offsetof(struct event_label, hop));
	out->kind = EVENT_LABEL;
	label->propagates = -1;
	if (head->rtm_flags & RTM_F_CLONED)
		return DECODE_IGNORED;
	if (head->rtm_dst_len != LABEL_BITS ||
		read_attrs(message, sizeof(*head), &wants_label, &draft) != DECODE_EVENT ||
		!draft.has_label)
		return DECODE_MALFORMED;
	if (!label->n_hops && (draft.single.ifindex || draft.single.via.family)) {
		label->hop[0] = draft.single;
		label->hop[0].flags = head->rtm_flags & RTNH_COMPARE_MASK;
		label->n_hops = 1;
	}
	return DECODE_EVENT;
}
