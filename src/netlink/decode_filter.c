// Decodes tc filters into rules of access lists, if these can say exactly what a filter does to the
// packets that workers forward. Pure.
#include "netlink/decode_filter_inside.h"

#include "base/bits.h"
#include "wire/transport.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void filter_refuse(struct event_filter *filter, const char *format, ...)
{
	va_list args;

	if (filter_is_refused(filter))
		return;
	va_start(args, format);
	vsnprintf(filter->reason, sizeof(filter->reason), format, args);
	va_end(args);
}

static bool is_upper_bits(uint16_t mask, uint16_t most)
{
	const uint16_t rest = ~mask & most;

	return !(mask & ~most) && !(rest & (rest + 1));
}

bool filter_read_range(struct acl_range *out, uint16_t value, uint16_t mask, uint16_t most)
{
	if (!is_upper_bits(mask, most))
		return false;
	*out = (struct acl_range){.least = value & mask,
		.most = (value & mask) | (~mask & most),
		.is_set = mask};
	return true;
}

bool filter_read_dscp(struct acl_range *out, uint8_t value, uint8_t mask)
{
	return !(mask & 3) && filter_read_range(out, value >> 2, mask >> 2, 63);
}

bool filter_read_prefix(struct wire_prefix *out, const uint8_t *value, const uint8_t *mask,
	uint8_t family)
{
	const unsigned bytes = family == 4 ? 4 : 16;
	unsigned len = 0;

	*out = (struct wire_prefix){.addr.family = family, .len = bytes * 8};
	memcpy(out->addr.bytes, value, bytes);
	if (!mask)
		return true;
	while (len < bytes * 8 && mask[len / 8] >> (7 - len % 8) & 1)
		len++;
	for (unsigned bit = len; bit < bytes * 8; bit++)
		if (mask[bit / 8] >> (7 - bit % 8) & 1)
			return false;
	out->len = len;
	wire_prefix_mask(out);
	if (!len)
		*out = (struct wire_prefix){.len = 0};
	return true;
}

static bool take_matchall_actions(void *out, const struct piece *value)
{
	((struct filter_draft *)out)->actions = *value;
	return true;
}

static const struct want want_matchall[] = {
	[TCA_MATCHALL_ACT] = {WANT_TAKE, .take = take_matchall_actions},
	[TCA_MATCHALL_FLAGS] = {WANT_U32, .at = offsetof(struct filter_draft, flags)},
};
static const struct wants wants_matchall = WANTS(want_matchall);

bool filter_read_matchall(struct filter_draft *draft)
{
	draft->out->n_rules = 1;
	return attrs_take(&wants_matchall, &draft->options, draft);
}

static const struct classifier {
	const char *kind;
	bool (*read)(struct filter_draft *draft);
} classifiers[] = {
	{"flower", filter_read_flower},
	{"matchall", filter_read_matchall},
	{"u32", filter_read_u32},
};

static const struct classifier *find_classifier(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(classifiers); i++)
		if (!strcmp(classifiers[i].kind, kind))
			return &classifiers[i];
	return NULL;
}

static bool asks_transport(const struct acl_rule *rule)
{
	return rule->from_port.is_set || rule->to_port.is_set || rule->icmp_type.is_set ||
	       rule->icmp_code.is_set || rule->tcp_mask;
}

// The text of rules has no word for whole packets with only some fragments, unless ports say it.
static void split_whole(struct event_filter *out)
{
	const uint8_t whole = 1 << WIRE_FRAGMENT_NONE, classes = out->rule[0].fragments;

	if (out->n_rules != 1 || asks_transport(&out->rule[0]) || !(classes & whole) ||
		classes == whole || classes == ACL_ANY_FRAGMENT)
		return;
	out->rule[1] = out->rule[0];
	out->rule[0].fragments = whole;
	out->rule[1].fragments = classes & ~whole;
	out->n_rules = 2;
}

// Rules that acl_rule_end() completes: their family becomes explicit.
static void end_rules(struct event_filter *out)
{
	struct error error;

	for (unsigned i = 0; i < out->n_rules; i++)
		if (acl_rule_end(&out->rule[i], &error))
			filter_refuse(out, "a rule that access lists cannot have");
}

static bool read_classifier(struct filter_draft *draft, const struct classifier *classifier)
{
	struct event_filter *out = draft->out;

	for (unsigned i = 0; i < FILTER_MAX_RULES; i++) {
		acl_rule_start(&out->rule[i]);
		out->rule[i].family = draft->family;
	}
	if (!classifier->read(draft))
		return false;
	split_whole(out);
	if (draft->flags & TCA_CLS_FLAGS_SKIP_SW)
		out->n_rules = 0; // for cards only, and TAP interfaces are none
	else if (!filter_read_actions(draft))
		return false;
	end_rules(out);
	return true;
}

// The reason why no filter of this place is understood, whatever it says; NULL: none.
static const char *place_refused(const struct event_filter *out)
{
	if (out->ifindex == FILTER_BLOCK)
		return "shared block";
	if (out->chain)
		return "chain other than 0";
	if (out->protocol == ETH_P_8021Q || out->protocol == ETH_P_8021AD)
		return "protocol 802.1Q or 802.1ad";
	if (out->protocol == ETH_P_MPLS_UC) // workers forward these, which no rule can match
		return "protocol mpls_uc";
	return NULL;
}

static bool concerns_packets(const struct event_filter *out)
{
	return out->protocol == ETH_P_IP || out->protocol == ETH_P_IPV6 ||
	       out->protocol == ETH_P_ALL;
}

static bool read_inside(struct filter_draft *draft)
{
	struct event_filter *out = draft->out;
	const struct classifier *classifier = find_classifier(out->kind);
	const char *refused = place_refused(out);

	if (refused)
		filter_refuse(out, "%s", refused);
	else if (!concerns_packets(out))
		return true;
	else if (!classifier)
		filter_refuse(out, "kind %s", out->kind);
	else
		return read_classifier(draft, classifier);
	return true;
}

struct tcmsg_draft {
	char kind[FILTER_KIND_MAX];
	uint32_t chain;
	struct piece options;
	bool has_options;
};

static bool take_options(void *out, const struct piece *value)
{
	struct tcmsg_draft *draft = out;

	draft->options = *value;
	draft->has_options = true;
	return true;
}

static const struct want want_tcmsg[] = {
	[TCA_KIND] = {WANT_TEXT, .at = offsetof(struct tcmsg_draft, kind)},
	[TCA_OPTIONS] = {WANT_TAKE, .take = take_options},
	[TCA_CHAIN] = {WANT_U32, .at = offsetof(struct tcmsg_draft, chain)},
};
static const struct wants wants_tcmsg = WANTS(want_tcmsg);

// Which filter it is. Those of other qdiscs only choose a class.
static enum decode_result read_place(const struct tcmsg *head, const struct tcmsg_draft *draft,
	struct event_filter *out)
{
	const bool is_block = (uint32_t)head->tcm_ifindex == TCM_IFINDEX_MAGIC_BLOCK;

	if (!is_block && TC_H_MAJ(head->tcm_parent) != TC_H_MAJ(TC_H_CLSACT))
		return DECODE_IGNORED;
	out->ifindex = is_block ? FILTER_BLOCK : head->tcm_ifindex;
	if (!is_block)
		out->side = TC_H_MIN(head->tcm_parent) == TC_H_MIN_EGRESS ? EVENT_EGRESS
		                                                          : EVENT_INGRESS;
	out->priority = TC_H_MAJ(head->tcm_info) >> 16;
	out->protocol = ntohs(TC_H_MIN(head->tcm_info));
	out->handle = head->tcm_handle;
	out->chain = draft->chain;
	memcpy(out->kind, draft->kind, sizeof(out->kind));
	return DECODE_EVENT;
}

// A priority itself, which is reported before its filters. Kind fw judges packets without filters.
static bool is_priority(const struct event_filter *out, const struct tcmsg_draft *draft)
{
	return !out->handle && !draft->has_options && strcmp(out->kind, "fw") != 0;
}

static bool is_u32_table(const struct event_filter *out)
{
	return !strcmp(out->kind, "u32") && !TC_U32_KEY(out->handle);
}

static enum decode_result filter_read(const struct nlmsghdr *message, struct event *event)
{
	const struct tcmsg *head = NLMSG_DATA(message);
	struct tcmsg_draft found = {.chain = 0};
	struct event_filter *out = &event->filter;
	struct filter_draft draft = {.out = out};
	enum decode_result result;

	if (read_attrs(message, sizeof(*head), &wants_tcmsg, &found) != DECODE_EVENT)
		return DECODE_MALFORMED;
	result = read_place(head, &found, out);
	if (result == DECODE_IGNORED) {
		queue_read_filter(message, event);
		return DECODE_EVENT;
	}
	if (result != DECODE_EVENT || event->is_delete)
		return result;
	if (is_priority(out, &found) || is_u32_table(out)) {
		out->what = FILTER_TABLE;
		return DECODE_EVENT;
	}
	draft.options = found.options;
	draft.family = out->protocol == ETH_P_IP ? 4 : out->protocol == ETH_P_IPV6 ? 6 : 0;
	if (!read_inside(&draft))
		return DECODE_MALFORMED;
	out->what = filter_is_refused(out) ? FILTER_UNKNOWN : FILTER_RULES;
	if (out->what == FILTER_UNKNOWN)
		out->n_rules = 0;
	memset(out->rule + out->n_rules, 0, (FILTER_MAX_RULES - out->n_rules) * sizeof(*out->rule));
	return DECODE_EVENT;
}
const struct reader read_filter = {sizeof(struct tcmsg), EVENT_FILTER, sizeof(struct event_filter),
	filter_read};

static enum decode_result action_read(const struct nlmsghdr *message, struct event *out)
{
	(void)message;
	(void)out;
	return DECODE_EVENT;
}
const struct reader read_action = {sizeof(struct tcamsg), EVENT_ACTION, 0, action_read};
