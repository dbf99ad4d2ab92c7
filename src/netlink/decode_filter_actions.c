// The actions of a filter, one after the other: gact, police, and pedit of the DSCP with csum.
// Pure.
#include "netlink/decode_filter_inside.h"

#include <arpa/inet.h>
#include <linux/pkt_cls.h>
#include <linux/tc_act/tc_csum.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_pedit.h>
#include <string.h>

enum {
	DSCP_SHIFT4 = 18, // in the first word of the header
	DSCP_SHIFT6 = 22,
	MAX_DSCP = 63,
};

// What the actions up to here do.
struct deed {
	struct filter_draft *draft;
	bool is_marked, needs_csum; // the checksum of the IPv4 header is that from before
	bool has_ended;             // an action did not say `pipe`
	uint8_t mark, effect;
	struct acl_police police; // rate 0: none
};

struct action_draft {
	char kind[EVENT_KIND_MAX];
	struct piece options;
	struct nla_bitfield32 flags;
};

static bool take_options(void *out, const struct piece *value)
{
	((struct action_draft *)out)->options = *value;
	return true;
}

static bool take_flags(void *out, const struct piece *value)
{
	struct action_draft *draft = out;

	if (value->n < sizeof(draft->flags))
		return false;
	memcpy(&draft->flags, value->bytes, sizeof(draft->flags));
	return true;
}

static const struct want want_action[] = {
	[TCA_ACT_KIND] = {WANT_TEXT, .at = offsetof(struct action_draft, kind)},
	[TCA_ACT_OPTIONS] = {WANT_TAKE, .take = take_options},
	[TCA_ACT_FLAGS] = {WANT_TAKE, .take = take_flags},
};
static const struct wants wants_action = WANTS(want_action);

static const char *verdict_word(int verdict)
{
	static const char *const words[] = {[TC_ACT_RECLASSIFY] = "reclassify",
		[TC_ACT_STOLEN] = "stolen",
		[TC_ACT_QUEUED] = "queued",
		[TC_ACT_REPEAT] = "repeat",
		[TC_ACT_REDIRECT] = "redirect",
		[TC_ACT_TRAP] = "trap"};

	if (TC_ACT_EXT_CMP(verdict, TC_ACT_GOTO_CHAIN))
		return "goto chain";
	if (TC_ACT_EXT_CMP(verdict, TC_ACT_JUMP))
		return "jump";
	return verdict > 0 && verdict <= TC_ACT_VALUE_MAX && words[verdict]
	               ? words[verdict]
	               : "of an unknown verdict";
}

// What every action ends with. `continue` asks the next filter: for flower that is one of the next
// priority, past the filters with other masks of its own.
static void end_action(struct deed *deed, int verdict, const char *kind)
{
	struct event_filter *out = deed->draft->out;

	deed->has_ended = verdict != TC_ACT_PIPE;
	if (verdict == TC_ACT_SHOT)
		deed->effect = ACL_DENY;
	else if (verdict == TC_ACT_UNSPEC &&
		 (deed->is_marked || deed->police.rate || !strcmp(out->kind, "flower")))
		filter_refuse(out, "action %s continue", kind);
	else if (verdict == TC_ACT_UNSPEC)
		out->n_rules = 0;
	else if (verdict != TC_ACT_PIPE && verdict != TC_ACT_OK)
		filter_refuse(out, "action %s %s", kind, verdict_word(verdict));
}

struct gact_draft {
	struct tc_gact parms;
	struct tc_gact_p random;
	bool has_parms;
};

static bool take_gact(void *out, const struct piece *value)
{
	struct gact_draft *draft = out;

	if (value->n < sizeof(draft->parms))
		return false;
	memcpy(&draft->parms, value->bytes, sizeof(draft->parms));
	draft->has_parms = true;
	return true;
}

static bool take_random(void *out, const struct piece *value)
{
	struct gact_draft *draft = out;

	if (value->n < sizeof(draft->random))
		return false;
	memcpy(&draft->random, value->bytes, sizeof(draft->random));
	return true;
}

static const struct want want_gact[] = {
	[TCA_GACT_PARMS] = {WANT_TAKE, .take = take_gact},
	[TCA_GACT_PROB] = {WANT_TAKE, .take = take_random},
};
static const struct wants wants_gact = WANTS(want_gact);

static bool read_gact(struct deed *deed, const struct piece *options)
{
	struct gact_draft draft = {.has_parms = false};

	if (!attrs_take(&wants_gact, options, &draft) || !draft.has_parms)
		return false;
	if (draft.random.ptype != PGACT_NONE)
		filter_refuse(deed->draft->out, "action gact random");
	end_action(deed, draft.parms.action, "gact");
	return true;
}

struct csum_draft {
	struct tc_csum parms;
	bool has_parms;
};

static bool take_csum(void *out, const struct piece *value)
{
	struct csum_draft *draft = out;

	if (value->n < sizeof(draft->parms))
		return false;
	memcpy(&draft->parms, value->bytes, sizeof(draft->parms));
	draft->has_parms = true;
	return true;
}

static const struct want want_csum[] = {[TCA_CSUM_PARMS] = {WANT_TAKE, .take = take_csum}};
static const struct wants wants_csum = WANTS(want_csum);

// A sum of a transport header would also be put right where it was wrong before.
static bool read_csum(struct deed *deed, const struct piece *options)
{
	struct csum_draft draft = {.has_parms = false};

	if (!attrs_take(&wants_csum, options, &draft) || !draft.has_parms)
		return false;
	if (draft.parms.update_flags != TCA_CSUM_UPDATE_FLAG_IPV4HDR)
		filter_refuse(deed->draft->out, "action csum of more than ip");
	else if (!deed->is_marked)
		filter_refuse(deed->draft->out, "action csum without pedit");
	deed->needs_csum = false;
	end_action(deed, draft.parms.action, "csum");
	return true;
}

struct pedit_draft {
	struct piece parms;
	uint32_t n_more;          // keys of the extended form
	uint16_t header, command; // of the first of them
};
#define AT(field) offsetof(struct pedit_draft, field)

static bool take_parms(void *out, const struct piece *value)
{
	((struct pedit_draft *)out)->parms = *value;
	return true;
}

static const struct want want_more[] = {
	[TCA_PEDIT_KEY_EX_HTYPE] = {WANT_U16, .at = AT(header)},
	[TCA_PEDIT_KEY_EX_CMD] = {WANT_U16, .at = AT(command)},
};
static const struct wants wants_more = WANTS(want_more);

static bool take_more(void *out, const struct piece *value)
{
	struct pedit_draft *draft = out;

	return draft->n_more++ || attrs_take(&wants_more, value, out);
}

static const struct want want_keys[] = {[TCA_PEDIT_KEY_EX] = {WANT_TAKE, .take = take_more}};
static const struct wants wants_keys = WANTS(want_keys);
static const struct want want_pedit[] = {
	[TCA_PEDIT_PARMS] = {WANT_TAKE, .take = take_parms},
	[TCA_PEDIT_PARMS_EX] = {WANT_TAKE, .take = take_parms},
	[TCA_PEDIT_KEYS_EX] = {WANT_INSIDE, .inside = &wants_keys},
};
static const struct wants wants_pedit = WANTS(want_pedit);

static bool is_of_family(const struct pedit_draft *draft, uint8_t family)
{
	return draft->header == TCA_PEDIT_KEY_EX_HDR_TYPE_NETWORK ||
	       draft->header == (family == 4 ? TCA_PEDIT_KEY_EX_HDR_TYPE_IP4
					     : TCA_PEDIT_KEY_EX_HDR_TYPE_IP6);
}

// The kernel keeps the bits of `mask` and flips those of `val`, in the word at `off`.
static bool read_mark(struct deed *deed, const struct pedit_draft *draft,
	const struct tc_pedit_key *key)
{
	const uint8_t family = deed->draft->family;
	const unsigned shift = family == 4 ? DSCP_SHIFT4 : DSCP_SHIFT6;
	const uint32_t dscp = (uint32_t)MAX_DSCP << shift;

	if (!family || !is_of_family(draft, family) || draft->command != TCA_PEDIT_KEY_EX_CMD_SET ||
		key->off || key->offmask || ntohl(key->mask) != ~dscp || ntohl(key->val) & ~dscp)
		return false;
	deed->mark = ntohl(key->val) >> shift;
	deed->is_marked = true;
	deed->needs_csum = family == 4;
	return true;
}

static bool read_pedit(struct deed *deed, const struct piece *options)
{
	struct pedit_draft draft = {.n_more = 0};
	struct tc_pedit_sel head;
	struct tc_pedit_key key;

	if (!attrs_take(&wants_pedit, options, &draft) || draft.parms.n < sizeof(head))
		return false;
	memcpy(&head, draft.parms.bytes, sizeof(head));
	if (draft.parms.n < sizeof(head) + head.nkeys * sizeof(key))
		return false;
	if (head.nkeys == 1)
		memcpy(&key, (const uint8_t *)draft.parms.bytes + sizeof(head), sizeof(key));
	if (head.nkeys != 1 || draft.n_more > 1 || !read_mark(deed, &draft, &key))
		filter_refuse(deed->draft->out,
			"action pedit of more or less than the DSCP (retain 0xfc) of one protocol");
	end_action(deed, head.action, "pedit");
	return true;
}

static const char *above_word(int verdict)
{
	return verdict == TC_ACT_OK       ? "pass"
	       : verdict == TC_ACT_PIPE   ? "pipe"
	       : verdict == TC_ACT_UNSPEC ? "continue"
	                                  : verdict_word(verdict);
}

static bool read_police(struct deed *deed, const struct piece *options)
{
	struct event_filter *out = deed->draft->out;
	struct filter_police found;

	if (!filter_read_police(out, options, &found))
		return false;
	if (deed->police.rate)
		filter_refuse(out, "action police twice");
	if (found.above != TC_ACT_SHOT)
		filter_refuse(out, "action police that does not drop what is above the rate (%s)",
			above_word(found.above));
	if (found.within == TC_ACT_UNSPEC)
		filter_refuse(out, "action police continue");
	deed->police = found.police;
	end_action(deed, found.within, "police");
	return true;
}

static bool read_one(struct deed *deed, const struct piece *attrs)
{
	static const struct {
		const char *kind;
		bool (*read)(struct deed *deed, const struct piece *options);
	} kinds[] = {{"gact", read_gact}, {"pedit", read_pedit}, {"csum", read_csum},
		{"police", read_police}};
	struct action_draft draft = {.kind = ""};

	if (!attrs_take(&wants_action, attrs, &draft))
		return false;
	if (draft.flags.value & TCA_ACT_FLAGS_SKIP_SW)
		filter_refuse(deed->draft->out, "action %s for cards only", draft.kind);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].kind, draft.kind))
			return kinds[i].read(deed, &draft.options);
	filter_refuse(deed->draft->out, "action %s", draft.kind);
	return true;
}

static void set_rules(struct event_filter *out, const struct deed *deed)
{
	for (unsigned i = 0; i < out->n_rules; i++) {
		out->rule[i].effect = deed->effect;
		out->rule[i].has_effect = true;
		out->rule[i].mark =
			deed->is_marked && deed->effect == ACL_PERMIT ? deed->mark : ACL_KEEP_DSCP;
		out->rule[i].police = deed->police;
	}
}

// A filter without actions, as one with `pipe` in the last, lets packets pass.
bool filter_read_actions(struct filter_draft *draft)
{
	struct deed deed = {.draft = draft, .effect = ACL_PERMIT};
	struct piece rest = draft->actions;
	const struct nlattr *attr;

	if (draft->police.n && !read_police(&deed, &draft->police))
		return false;
	while (!deed.has_ended && !filter_is_refused(draft->out) && (attr = attrs_next(&rest))) {
		struct piece value = attrs_value(attr);

		if (!read_one(&deed, &value))
			return false;
	}
	if (!deed.has_ended && !filter_is_refused(draft->out) && rest.n)
		return false;
	if (deed.needs_csum && deed.effect == ACL_PERMIT)
		filter_refuse(draft->out,
			"action pedit without csum ip, so that the checksum is wrong");
	if (deed.police.rate && deed.effect == ACL_DENY)
		filter_refuse(draft->out, "action police before a drop");
	set_rules(draft->out, &deed);
	return true;
}
