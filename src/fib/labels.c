// MPLS labels. Workers see MPLS as off while there is none. Control thread.
#include "fib/labels.h"

#include "base/pages.h"
#include "fib/table.h"

#include <errno.h>

static const size_t BYTES = (FIB_MAX_LABEL + 1) * sizeof(uint32_t);

static_assert((int)FIB_MAX_HOPS <= (int)FIB_LABEL_VALUE &&
		      (int)IFACE_MAX_VRFS <= (int)FIB_LABEL_VALUE,
	"an entry holds any hop or VRF");

void labels_close(struct labels *labels)
{
	pages_free(labels->entry, BYTES);
}

size_t labels_bytes(const struct labels *labels)
{
	return labels->end * sizeof(*labels->entry);
}

// While there is one, workers look at frames with labels.
static void show_to_workers(struct fib *fib)
{
	const uint32_t *entry = fib->labels.n ? fib->labels.entry : NULL;

	__atomic_store_n(&fib->view.labels, entry, __ATOMIC_RELEASE);
}

static bool is_sound(const struct fib *fib, const struct fib_label *label)
{
	if (label->label > FIB_MAX_LABEL)
		return false;
	switch (label->op) {
	case FIB_LABEL_FORWARD:
		return change_hop_is_sound(&fib->hops, &label->hop);
	case FIB_LABEL_LOOKUP:
		return vrf_exists(fib, label->vrf);
	default:
		return label->op == FIB_LABEL_LINUX;
	}
}

static bool forwards(uint32_t entry)
{
	return fib_label_op(entry) == FIB_LABEL_FORWARD;
}

// Replaces an entry and gives up the hop of the old one.
static void write_entry(struct fib *fib, uint32_t label, uint32_t entry)
{
	struct labels *labels = &fib->labels;
	const uint32_t old = labels->entry[label], hop = old & FIB_LABEL_VALUE;

	labels->n += !!entry - !!old;
	labels->end = MAX_OF(labels->end, label + 1);
	__atomic_store_n(&labels->entry[label], entry, __ATOMIC_RELEASE);
	show_to_workers(fib);
	if (forwards(old)) {
		fib->hops.hop[hop].n_routes--;
		hops_release(&fib->hops, hop);
	}
	change_publish(fib, NULL, 0);
}

static int open_entries(struct labels *labels)
{
	if (labels->entry)
		return 0;
	labels->entry = pages_alloc(BYTES);
	if (!labels->entry)
		return -ENOSPC;
	pages_keep_small(labels->entry, BYTES);
	return 0;
}

int fib_label_set(struct fib *fib, const struct fib_label *label, struct error *error)
{
	uint32_t value = label->op == FIB_LABEL_LOOKUP ? label->vrf : 0;

	if (!is_sound(fib, label))
		return error_set(error, -EINVAL,
			"label %u: its number, operation, next hop or VRF is invalid",
			label->label);
	if (label->op == FIB_LABEL_FORWARD)
		value = change_acquire_hop(fib, &label->hop);
	if (open_entries(&fib->labels) || (label->op == FIB_LABEL_FORWARD && !value)) {
		if (value && label->op == FIB_LABEL_FORWARD)
			hops_release(&fib->hops, value);
		change_publish(fib, NULL, 0);
		return error_set(error, -ENOSPC,
			"no space for label %u: the table holds at most %u next hops", label->label,
			FIB_MAX_HOPS);
	}
	if (label->op == FIB_LABEL_FORWARD)
		fib->hops.hop[value].n_routes++;
	write_entry(fib, label->label,
		value | (uint32_t)label->op << FIB_LABEL_OP |
			(label->is_pipe ? FIB_LABEL_PIPE : 0) |
			(label->loops ? FIB_LABEL_LOOPS : 0) |
			(label->ends_stack ? FIB_LABEL_ENDS : 0));
	return 0;
}

int fib_label_delete(struct fib *fib, uint32_t label)
{
	if (label >= fib->labels.end || !fib->labels.entry[label])
		return -ENOENT;
	write_entry(fib, label, 0);
	return 0;
}

bool fib_label_next(const struct fib *fib, uint32_t from, struct fib_label *out)
{
	const struct labels *labels = &fib->labels;

	while (from < labels->end && !labels->entry[from])
		from++;
	if (from >= labels->end)
		return false;
	const uint32_t entry = labels->entry[from], value = entry & FIB_LABEL_VALUE;
	*out = (struct fib_label){
		.label = from,
		.op = fib_label_op(entry),
		.is_pipe = entry & FIB_LABEL_PIPE,
		.loops = entry & FIB_LABEL_LOOPS,
		.ends_stack = entry & FIB_LABEL_ENDS,
		.hop.iface = IFACE_NONE,
	};
	if (out->op == FIB_LABEL_FORWARD)
		out->hop = fib->hops.hop[value].key;
	else
		out->vrf = value;
	return true;
}
