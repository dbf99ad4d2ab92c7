// See acl_judge.h. A key is made of each packet that has a list; a burst may need several lists.
// Worker.
#include "datapath/acl_judge.h"

#include "datapath/judge.h"
#include "datapath/trace.h"
#include "wire/headers.h"

// Bytes of the packet itself that are contiguous: trailing bytes and padding are no part of it.
static size_t packet_bytes(const struct burst *b, uint16_t i)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;
	const size_t says = b->is_ip6 ? WIRE_IP6_BYTES + be16toh(ip6->payload_length_be)
	                              : be16toh(ip4->total_length_be);

	return MIN_OF(says, (size_t)burst_contiguous_bytes(b, i) - WIRE_ETHER_BYTES);
}

static bool gets_labels(const struct burst *b, uint16_t i)
{
	return b->template_mask >> i & 1 && fib_template_load(b->view, b->hop[i])->n_labels;
}

// Whether Linux's filters would find the same in a packet as its key says. At egress they see the
// fragments of one that is longer than the MTU, and labels that are pushed.
static bool is_alike(const struct acl_basis *basis, const struct burst *b, uint16_t i)
{
	if (basis->direction == ACL_OUT && (b->fragment_mask >> i & 1 || gets_labels(b, i)))
		return false;
	return acl_is_alike(b->frame[i] + WIRE_ETHER_BYTES, packet_bytes(b, i), b->is_ip6);
}

static bool read_key(const struct burst *b, uint16_t i, struct acl_key *key)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;

	return b->is_ip6 ? acl_key6(key, packet, packet_bytes(b, i))
	                 : acl_key4(key, packet, packet_bytes(b, i));
}

static bool is_local(const struct burst *b, uint16_t i, enum acl_direction direction)
{
	return direction == ACL_IN && judge_is_for_router(fib_verdict_load(b->view, b->hop[i]));
}

// Filters see the packet as it will be sent, or Linux would see it.
static void read_keys(const struct acl_basis *basis, const struct burst *b,
	const struct acl_list *list, uint64_t mask, struct acl_subjects *out,
	struct acl_verdicts *verdicts)
{
	out->n = 0;
	for (; mask; mask &= mask - 1) {
		const uint16_t i = __builtin_ctzll(mask);
		const bool local = is_local(b, i, basis->direction);
		struct acl_key *key = &out->key[out->n];

		if (local && !list->has_local)
			continue;
		if (unlikely(!read_key(b, i, key) || (basis->is_tc && !is_alike(basis, b, i)))) {
			verdicts->stopped |= 1ull << i;
			verdicts->verdict[i] =
				basis->is_tc ? VERDICT_LINUX : VERDICT_ACL_UNPARSABLE;
			continue;
		}
		key->is_local = local;
		if (basis->is_tc && b->mark_mask >> i & 1)
			key->dscp = b->dscp[i];
		out->index[out->n++] = i;
	}
}

static enum verdict verdict_of(enum acl_effect effect)
{
	switch (effect) {
	case ACL_PERMIT:
		return VERDICT_FORWARD;
	case ACL_REJECT:
		return VERDICT_ACL_REJECTED;
	case ACL_PUNT:
		return VERDICT_ACL_PUNTED;
	default:
		return VERDICT_ACL_DENIED;
	}
}

// The end of a list says nothing about packets for the router itself.
static enum verdict decide(const struct acl_basis *basis, const struct acl_key *key,
	const struct acl_action *action, uint32_t rule, uint16_t length)
{
	if (!rule && key->is_local)
		return VERDICT_FORWARD;
	acl_count_packet(basis->count, action->counter, length);
	const enum verdict verdict = verdict_of(action->effect);

	return basis->is_tc && verdict != VERDICT_FORWARD ? VERDICT_TC_DROPPED : verdict;
}

static void note_rule(const struct acl_basis *basis, const struct acl_list *list,
	const struct acl_key *key, uint32_t rule, bool is_red)
{
	trace_rule(basis->tracer, &(struct trace_rule){.list = list,
					  .rule = rule,
					  .direction = basis->direction,
					  .is_tc = basis->is_tc,
					  .is_local = key->is_local,
					  .is_red = is_red});
}

// The verdict of one packet.
static enum verdict decide_one(const struct acl_basis *basis, const struct acl_list *list,
	const struct burst *b, uint8_t i, const struct acl_key *key, uint32_t rule)
{
	const enum verdict verdict = decide(basis, key, &list->action[rule], rule, b->length[i]);
	const bool is_red =
		unlikely(list->policer != NULL) && acl_police(basis, list, b, &i, &rule, 1);

	if (unlikely(basis->tracer != NULL))
		note_rule(basis, list, key, rule, is_red);
	return is_red ? VERDICT_POLICE_RED : verdict;
}

// The packet leaves with this DSCP, or another interface gets a copy of it.
static void set_extras(struct burst *b, uint16_t i, const struct acl_action *action)
{
	const uint16_t mirror = __atomic_load_n(&action->mirror, __ATOMIC_RELAXED);

	if (action->dscp != ACL_KEEP_DSCP) {
		b->dscp[i] = action->dscp;
		b->mark_mask |= 1ull << i;
		b->has |= BURST_MARKS;
	}
	if (mirror != ACL_NO_MIRROR) {
		b->mirror[i] = mirror;
		b->mirror_mask |= 1ull << i;
		b->has |= BURST_MIRRORS;
	}
}

static void judge_by(const struct acl_basis *basis, const struct acl_list *list, struct burst *b,
	uint64_t mask, struct acl_verdicts *out)
{
	struct acl_subjects subjects;
	uint64_t red = 0;

	read_keys(basis, b, list, mask, &subjects, out);
	acl_classify(list, b->is_ip6, subjects.key, subjects.rule, subjects.n);
	if (unlikely(list->policer != NULL))
		red = acl_police(basis, list, b, subjects.index, subjects.rule, subjects.n);
	if (unlikely(basis->tracer && subjects.n))
		note_rule(basis, list, &subjects.key[0], subjects.rule[0], red);
	for (unsigned k = 0; k < subjects.n; k++) {
		const uint16_t i = subjects.index[k];
		const struct acl_action *action = &list->action[subjects.rule[k]];
		enum verdict verdict =
			decide(basis, &subjects.key[k], action, subjects.rule[k], b->length[i]);

		if (unlikely(red >> k & 1))
			verdict = VERDICT_POLICE_RED;
		if (verdict == VERDICT_FORWARD) {
			set_extras(b, i, action);
			continue;
		}
		out->stopped |= 1ull << i;
		out->verdict[i] = verdict;
	}
}

static const struct acl_list *list_of(const struct acl_basis *basis, const struct burst *b,
	uint16_t i)
{
	const uint16_t iface =
		basis->direction == ACL_IN ? burst_iif(b, i) : fib_oif_load(b->view, b->hop[i]);

	return acl_view_list(basis->view, basis->direction, iface);
}

void acl_judge(const struct acl_basis *basis, struct burst *b, uint64_t mask,
	struct acl_verdicts *out)
{
	uint64_t left = mask;

	out->stopped = 0;
	while (left) {
		const struct acl_list *list = list_of(basis, b, __builtin_ctzll(left));
		uint64_t same = 0;

		for (uint64_t rest = left; rest; rest &= rest - 1) {
			const uint16_t i = __builtin_ctzll(rest);

			same |= (uint64_t)(list_of(basis, b, i) == list) << i;
		}
		if (list)
			judge_by(basis, list, b, same, out);
		left &= ~same;
	}
}

// Verdicts with which Linux gets packets that it then forwards. Those of redirect have been judged.
static bool linux_forwards(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_LINUX:
	case VERDICT_OWN_SOURCE:
	case VERDICT_NEIGHBOUR_UNRESOLVED:
	case VERDICT_BRIDGE_UNKNOWN:
	case VERDICT_MTU_EXCEEDED:
	case VERDICT_FLOW_PUNTED:
	case VERDICT_ACL_PUNTED:
		return true;
	default:
		return false;
	}
}

// The verdict of a packet by the list of the interface to which its hop leads.
static enum verdict judge_out(struct worker *w, const struct acl_view *view, const struct burst *b,
	uint16_t i, enum verdict verdict)
{
	const struct acl_basis basis = acl_basis_of(w, view, ACL_OUT);
	const uint16_t oif = fib_oif_load(b->view, datapath_ecmp_hop(b, i));
	const struct acl_list *list = acl_view_list(view, ACL_OUT, oif);
	struct acl_key key;
	uint32_t rule;

	if (!list)
		return verdict;
	if (!read_key(b, i, &key))
		return VERDICT_ACL_UNPARSABLE;
	acl_classify(list, b->is_ip6, &key, &rule, 1);
	const enum verdict judged = decide_one(&basis, list, b, i, &key, rule);

	return judged == VERDICT_FORWARD || judged == VERDICT_ACL_PUNTED ? verdict : judged;
}

// The tap thread sends ICMP errors by the main table only.
static void stop_one(struct worker *w, const struct burst *b, uint16_t i, enum verdict verdict)
{
	if (verdict == VERDICT_ACL_REJECTED && burst_vrf(b, i) != 0)
		worker_drop(w, b->mbuf[i], verdict);
	else
		worker_stop(w, b->mbuf[i], b->in_port, verdict);
}

// The list of the output interface has judged, and counted, what it stops.
void acl_stop(struct worker *w, struct burst *b, enum acl_direction direction,
	const struct acl_verdicts *verdicts)
{
	for (uint64_t rest = verdicts->stopped; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		if (direction == ACL_OUT)
			stop_one(w, b, i, verdicts->verdict[i]);
		else
			burst_drop(w, b, i, verdicts->verdict[i]);
	}
	burst_keep(b, ~verdicts->stopped);
}

__attribute__((noinline)) void burst_drop_judged(struct worker *w, const struct burst *b,
	uint16_t i, enum verdict verdict)
{
	const struct acl_view *view = acl_live_view(w->acls);

	if (view && acl_view_has(view, ACL_OUT) && linux_forwards(verdict))
		verdict = judge_out(w, view, b, i, verdict);
	stop_one(w, b, i, verdict);
}

// The verdict of the packet of a burst of one, as the steps acl_in, flow and acl_out would give it.
static enum verdict judge_linuxs(struct worker *w, struct burst *one, enum verdict verdict)
{
	const struct acl_view *view = w->acls ? acl_live_view(w->acls) : NULL;
	struct acl_verdicts verdicts = {.stopped = 0};

	if (view) {
		const struct acl_basis basis = acl_basis_of(w, view, ACL_IN);

		acl_judge(&basis, one, burst_all(one), &verdicts);
	}
	if (verdicts.stopped && verdicts.verdict[0] != VERDICT_ACL_PUNTED)
		return verdicts.verdict[0];
	if (w->flows && !verdicts.stopped)
		verdict = datapath_flow_linuxs(w, one, verdict);
	if (!view || verdict == VERDICT_FLOW_DROPPED || verdict == VERDICT_FLOW_MISSING ||
		judge_is_for_router(fib_verdict_load(one->view, one->hop[0])))
		return verdict;
	return judge_out(w, view, one, 0, verdict);
}

void acl_stop_linuxs(struct worker *w, struct burst *one, enum verdict verdict)
{
	stop_one(w, one, 0, judge_linuxs(w, one, verdict));
}

static enum verdict judge_local(const struct acl_basis *basis, const struct acl_list *list,
	const struct burst *one, enum verdict verdict)
{
	struct acl_key key;
	uint32_t rule;

	if (!read_key(one, 0, &key))
		return VERDICT_ACL_UNPARSABLE;
	key.is_local = true;
	acl_classify(list, one->is_ip6, &key, &rule, 1);
	const enum verdict judged = decide_one(basis, list, one, 0, &key, rule);

	return judged == VERDICT_FORWARD || judged == VERDICT_ACL_PUNTED ? verdict : judged;
}

void acl_stop_local(struct worker *w, struct burst *one, enum verdict verdict)
{
	const struct acl_view *view = acl_live_view(w->acls);
	const struct acl_list *list = view ? acl_view_list(view, ACL_IN, burst_iif(one, 0)) : NULL;

	if (list && list->has_local) {
		const struct acl_basis basis = acl_basis_of(w, view, ACL_IN);

		verdict = judge_local(&basis, list, one, verdict);
	}
	stop_one(w, one, 0, verdict);
}

// The packets that Linux will not get, as far as it is known before the step check.
static uint64_t find_forwarded(const struct worker *w, const struct burst *b)
{
	uint64_t found = burst_all(b) & ~b->linux_mask;

	for (uint64_t rest = found; rest; rest &= rest - 1) {
		const uint16_t i = __builtin_ctzll(rest);

		if (w->tap->class_of[fib_verdict_load(b->view, b->hop[i])] != CLASS_NONE)
			found &= ~(1ull << i);
	}
	return found;
}

static __attribute__((noinline)) void judge_tc(struct worker *w, struct burst *b,
	const struct acl_basis *basis)
{
	const bool is_in = basis->direction == ACL_IN;
	struct acl_verdicts verdicts;

	if (is_in && b->has_one_iif && !acl_view_list(basis->view, ACL_IN, b->iif[0]))
		return;
	acl_judge(basis, b, is_in ? find_forwarded(w, b) : burst_all(b), &verdicts);
	if (verdicts.stopped)
		acl_stop(w, b, basis->direction, &verdicts);
}

void acl_judge_tc(struct worker *w, struct burst *b, enum acl_direction direction)
{
	const struct acl_view *view = w->filters ? acl_live_view(w->filters) : NULL;

	if (likely(!view || !acl_view_has(view, direction)))
		return;
	const struct acl_basis basis = {view, w->filters->count[w->io->id], true, direction,
		acl_tracer(w)};

	judge_tc(w, b, &basis);
}
