// VRFs and their built-in routes. The view of a VRF exists from when it is opened first: a closed
// one has empty trees, so workers never see one half created. Control thread.
#include "fib/table.h"

#include <errno.h>

struct builtin {
	uint8_t family, len, kind;
	bool is_rfcs;     // Linux does not have it: it forwards by its routes (6.18)
	uint8_t bytes[4]; // the prefix's first ones
	uint8_t last;     // and the last byte, for ::1
};

static const struct builtin builtins[] = {
	{4, 8, FIB_MARTIAN, true, {0}, 0},                    // RFC 1812 5.3.7: this network
	{4, 32, FIB_MARTIAN, false, {0}, 0},                  // RFC 1122 3.2.1.3: this host
	{4, 8, FIB_MARTIAN, false, {127}, 0},                 // loopback
	{4, 4, FIB_MARTIAN, true, {240}, 0},                  // class E
	{4, 32, FIB_MARTIAN, false, {255, 255, 255, 255}, 0}, // RFC 1812 5.3.5.1: limited broadcast
	{4, 16, FIB_LINK_LOCAL, true, {169, 254}, 0},         // RFC 3927 7
	{4, 4, FIB_MULTICAST, false, {224}, 0},               // RFC 1812 5.3.7
	{6, 128, FIB_MARTIAN, true, {0}, 0},                  // RFC 4291 2.5.2: unspecified
	{6, 128, FIB_MARTIAN, false, {0}, 1},                 // RFC 4291 2.5.3: loopback
	{6, 10, FIB_LINK_LOCAL, false, {0xfe, 0x80}, 0},      // RFC 4291 2.5.6
	{6, 8, FIB_MULTICAST, false, {0xff}, 0},              // RFC 4291 2.7
};

static struct rib_prefix prefix_of(const struct builtin *builtin, uint16_t vrf)
{
	struct wire_prefix prefix = {.addr.family = builtin->family, .len = builtin->len};

	memcpy(prefix.addr.bytes, builtin->bytes, sizeof(builtin->bytes));
	prefix.addr.bytes[15] = builtin->last;
	return rib_prefix_in(vrf, &prefix);
}

static void publish(struct fib *fib, const struct rib_prefix *prefix)
{
	struct edit edit = {.key = prefix->key, .len = prefix->len, .tree = prefix->tree};

	change_publish(fib, &edit, 1);
}

static bool is_left_out(const struct fib *fib, const struct builtin *builtin)
{
	return fib->follows_linux && builtin->is_rfcs;
}

static int add_builtin(struct fib *fib, uint16_t vrf, const struct builtin *builtin)
{
	const struct rib_prefix place = prefix_of(builtin, vrf);

	if (is_left_out(fib, builtin))
		return 0;
	const struct fib_hop hop = {.iface = IFACE_NONE, .kind = builtin->kind};
	uint32_t id = change_acquire_hop(fib, &hop);

	if (!id)
		return -ENOMEM;
	uint32_t node = rib_insert(&fib->rib, &place);
	if (!node) {
		hops_release(&fib->hops, id);
		return -ENOMEM;
	}
	rib_node(&fib->rib, node)->builtin = builtin->kind;
	fib->hops.builtin[builtin->kind] = id;
	publish(fib, &place);
	return 0;
}

static void remove_builtin(struct fib *fib, uint16_t vrf, const struct builtin *builtin)
{
	const struct rib_prefix place = prefix_of(builtin, vrf);

	if (is_left_out(fib, builtin))
		return;
	rib_node(&fib->rib, rib_find(&fib->rib, &place))->builtin = 0;
	rib_prune(&fib->rib, &place);
	hops_release(&fib->hops, fib->hops.builtin[builtin->kind]);
	publish(fib, &place);
}

static int add_builtins(struct fib *fib, uint16_t vrf)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++) {
		if (!add_builtin(fib, vrf, &builtins[i]))
			continue;
		while (i)
			remove_builtin(fib, vrf, &builtins[--i]);
		return -ENOMEM;
	}
	fib->open_vrfs[vrf / 64] |= 1ull << vrf % 64;
	fib->n_vrfs++;
	return 0;
}

// Routes for whose next hops there is no space can still be left to Linux.
static int keep_linux(struct fib *fib)
{
	const struct fib_hop hop = {.iface = IFACE_NONE, .kind = FIB_LINUX};

	return change_acquire_hop(fib, &hop) ? 0 : -ENOMEM;
}

int vrf_open_main(struct fib *fib)
{
	fib->vrf_view[0] = fib->view;
	return add_builtins(fib, 0) || keep_linux(fib) ? -ENOMEM : 0;
}

// Workers read it only once an interface is in this VRF.
static void make_view(struct fib *fib, uint16_t vrf)
{
	struct fib_view *view = &fib->vrf_view[vrf];

	publish4_open_vrf(&fib->publish4, vrf);
	*view = fib->view;
	view->is_far4 = view->waits4 = false;
	view->lookup4 = fib->lookups->vrf4;
	view->begin4 = fib->lookups->vrf_begin4;
	view->root4 = publish4_root(&fib->publish4, vrf);
	view->root6 = publish6_root(&fib->publish6, vrf);
}

void fib_follow_linux(struct fib *fib)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins) && !fib->follows_linux; i++)
		if (builtins[i].is_rfcs)
			remove_builtin(fib, 0, &builtins[i]);
	fib->follows_linux = true;
}

const struct fib_view *vrf_view_of(const struct fib *fib, uint16_t vrf)
{
	if (!vrf)
		return &fib->view;
	return vrf < FIB_MAX_VRFS && fib->vrf_view[vrf].node4 ? &fib->vrf_view[vrf] : NULL;
}

int fib_vrf_open(struct fib *fib, uint16_t vrf, struct error *error)
{
	if (vrf >= FIB_MAX_VRFS)
		return error_set(error, -EINVAL, "invalid VRF %u: expected 1 to %u", vrf,
			FIB_MAX_VRFS - 1);
	if (vrf_exists(fib, vrf))
		return error_set(error, -EEXIST, "VRF %u is already open", vrf);
	if (!vrf_view_of(fib, vrf))
		make_view(fib, vrf);
	if (add_builtins(fib, vrf))
		return error_set(error, -ENOMEM, "not enough memory for VRF %u", vrf);
	return 0;
}

void fib_vrf_close(struct fib *fib, uint16_t vrf)
{
	const uint16_t trees[] = {rib_tree(vrf, 4), rib_tree(vrf, 6)};

	if (!vrf || !vrf_exists(fib, vrf))
		return;
	fib->open_vrfs[vrf / 64] &= ~(1ull << vrf % 64);
	fib->n_vrfs--;
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		change_clear(fib, trees[i]);
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		remove_builtin(fib, vrf, &builtins[i]);
	if (!fib->rib.root[rib_tree(vrf, 6)]) // otherwise neighbours are left there for a reopening
		publish6_close_root(&fib->publish6, vrf);
}

bool fib_vrf_is_open(const struct fib *fib, uint16_t vrf)
{
	return vrf_exists(fib, vrf);
}
