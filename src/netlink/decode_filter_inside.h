// Shared by the files that decode tc filters: one for each classifier, and one for actions. Pure.
#pragma once

#include "netlink/decode_inside.h"

// A filter while it is read.
struct filter_draft {
	struct event_filter *out;
	struct piece options, actions; // of the classifier; n 0: none
	struct piece police;           // options of action police, in place of actions; n 0: none
	uint32_t flags;                // TCA_CLS_FLAGS_*
	uint8_t family;                // that its protocol says: 4, 6, or 0: both
};

// Says why the filter is not understood; the first reason stays.
void filter_refuse(struct event_filter *filter, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static inline bool filter_is_refused(const struct event_filter *filter)
{
	return filter->reason[0];
}

// A classifier: reads draft->options into the conditions of out->rule[], of which n_rules becomes
// the number, and finds draft->actions and flags. Rules that can match nothing are left out. False:
// malformed.
bool filter_read_flower(struct filter_draft *draft);
bool filter_read_matchall(struct filter_draft *draft);
bool filter_read_u32(struct filter_draft *draft);
// What the actions do, into the effect and the mark of all rules. False: malformed.
bool filter_read_actions(struct filter_draft *draft);

// What action police does with a packet, as verdicts of tc.
struct filter_police {
	struct acl_police police;
	int within, above; // the rate
};
// Reads its options, and refuses what the policer of a rule cannot say. False: malformed.
bool filter_read_police(struct event_filter *filter, const struct piece *options,
	struct filter_police *out);

// A value under a mask as a range of numbers, if the mask is some upper bits of `most`, a power of
// two less 1; a mask of 0 sets no range.
bool filter_read_range(struct acl_range *out, uint16_t value, uint16_t mask, uint16_t most);
// An address of family 4 or 6 under a mask as a prefix, if the mask is one; mask NULL: all bits.
bool filter_read_prefix(struct wire_prefix *out, const uint8_t *value, const uint8_t *mask,
	uint8_t family);
// A DSCP of the 8 bits of TOS or traffic class, if the mask leaves out the ECN bits.
bool filter_read_dscp(struct acl_range *out, uint8_t value, uint8_t mask);
