// Judges packets by the access lists of their interfaces. Internal to the datapath. Worker.
#pragma once

#include "acl/acl_fast.h"
#include "datapath/burst.h"

// Packets that a list has stopped, a bit for each, and their verdicts.
struct acl_verdicts {
	uint64_t stopped;
	uint8_t verdict[BURST_MAX];
};

// The lists that judge: those of `acl:`, or the tc filters of Linux as lists.
struct acl_basis {
	const struct acl_view *view; // not NULL
	struct acl_count *count;
	bool is_tc;
	enum acl_direction direction;
	struct worker
		*tracer; // NULL, but for a traced packet: its rule is noted, and no token taken
};

static inline struct worker *acl_tracer(struct worker *w)
{
	return unlikely(w->trace != NULL) ? w : NULL;
}

// The lists of `acl:`.
static inline struct acl_basis acl_basis_of(struct worker *w, const struct acl_view *view,
	enum acl_direction direction)
{
	return (struct acl_basis){view, w->acls->count[w->io->id], false, direction, acl_tracer(w)};
}

// The packets of a burst that one list judges, densely.
struct acl_subjects {
	unsigned n;
	uint8_t index[BURST_MAX]; // in the burst
	uint32_t rule[BURST_MAX]; // that matches
	struct acl_key key[BURST_MAX];
};

// Polices and counts those packets whose rules have a policer. Returns a bit for each, by its place
// among `n` packets with these indices in the burst and these rules, that is above the rate.
uint64_t acl_police(const struct acl_basis *basis, const struct acl_list *list,
	const struct burst *b, const uint8_t index[], const uint32_t rule[], unsigned n);

// Judges those packets of a burst that are in `mask` by the lists of their input interfaces, or of
// those to which their hops lead; counts them, and sets marks and mirrors of those that may pass.
void acl_judge(const struct acl_basis *basis, struct burst *b, uint64_t mask,
	struct acl_verdicts *out);
// Drops or punts the packet of a burst of one, whose lookups are done: Linux would get it with this
// verdict, and forward it, so the lists of both of its interfaces and its flow judge it first.
void acl_stop_linuxs(struct worker *w, struct burst *one, enum verdict verdict);
// Drops or punts the packet of a burst of one without a lookup: Linux gets it with this verdict,
// and takes it for itself, so rules with `local` of its input interface judge it first.
void acl_stop_local(struct worker *w, struct burst *one, enum verdict verdict);
// Removes the packets that acl_judge has stopped in this direction.
void acl_stop(struct worker *w, struct burst *b, enum acl_direction direction,
	const struct acl_verdicts *verdicts);
// Removes packets that workers would forward and tc filters stop: part of acl_in and acl_out, after
// the lists of `acl:`. Linux gets what they cannot judge. What Linux gets anyway is not judged:
// Linux does it.
void acl_judge_tc(struct worker *w, struct burst *b, enum acl_direction direction);
