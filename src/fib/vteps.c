// The remote ends of VXLAN devices: numbered, reference-counted, each led to by the hop of the
// route to its address. Control thread.
#include "fib/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(uint16_t vrf, const uint8_t addr[16], bool is_ip6)
{
	return hash_table_hash(addr, (uint32_t)vrf << 1 | is_ip6);
}

uint32_t fib_vtep_find(const struct fib *fib, uint16_t vrf, const struct wire_addr *addr)
{
	const struct vxlans *vxlans = &fib->vxlans;
	const bool is_ip6 = addr->family == 6;
	const struct vtep *vtep =
		hash_table_find(&vxlans->table, hash_of(vrf, addr->bytes, is_ip6));

	for (; vtep; vtep = hash_table_find_next(&vtep->node)) {
		const struct fib_vtep *shown = &vxlans->shown[vtep - vxlans->vtep];

		if (shown->vrf == vrf && shown->is_ip6 == is_ip6 &&
			!memcmp(shown->addr, addr->bytes, sizeof(shown->addr)))
			return vtep - vxlans->vtep;
	}
	return 0;
}

bool fib_vtep_next(const struct fib *fib, uint32_t *number, uint16_t *vrf, struct wire_addr *addr)
{
	const struct vxlans *vxlans = &fib->vxlans;

	for (uint32_t at = *number + 1; at <= vxlans->max; at++) {
		const struct fib_vtep *shown = &vxlans->shown[at];

		if (!vxlans->vtep[at].n_holds || vxlans->vtep[at].group)
			continue;
		*number = at;
		*vrf = shown->vrf;
		*addr = (struct wire_addr){.family = shown->is_ip6 ? 6 : 4};
		memcpy(addr->bytes, shown->addr, sizeof(addr->bytes));
		return true;
	}
	return false;
}

// Another hop leads there from now on; 0: none.
static void lead(struct fib *fib, struct fib_vtep *vtep, uint32_t id)
{
	const uint32_t old = vtep->hop;

	if (id == old)
		return;
	if (id)
		fib->hops.hop[id].n_holders++;
	__atomic_store_n(&vtep->hop, id, __ATOMIC_RELEASE);
	if (old)
		hops_release(&fib->hops, old);
}

static void follow(struct fib *fib, struct fib_vtep *vtep)
{
	struct wire_addr addr = {.family = vtep->is_ip6 ? 6 : 4};
	struct fib_answer answer;

	memcpy(addr.bytes, vtep->addr, sizeof(addr.bytes));
	rib_lookup(fib, vtep->vrf, &addr, &answer);
	lead(fib, vtep, answer.hop_id);
}

void vteps_follow(struct fib *fib)
{
	const struct vxlans *vxlans = &fib->vxlans;

	if (!vxlans->n_vteps)
		return;
	for (uint32_t i = 1; i <= vxlans->max; i++)
		if (vxlans->vtep[i].n_holds && !vxlans->vtep[i].group)
			follow(fib, &vxlans->shown[i]);
	hops_sweep(&fib->hops);
}

void vteps_reuse(struct vxlans *vxlans, uint32_t number)
{
	free(vxlans->vtep[number].group);
	vxlans->vtep[number].group = NULL;
	vxlans->unused[vxlans->n_unused++] = number;
}

static uint32_t take_number(struct fib *fib)
{
	struct vxlans *vxlans = &fib->vxlans;

	if (!vxlans->n_unused && vxlans->max == FIB_MAX_VTEPS)
		rcu_defer_drain(&fib->defer); // deferred frees may include numbers
	if (vxlans->n_unused)
		return vxlans->unused[--vxlans->n_unused];
	return vxlans->max < FIB_MAX_VTEPS ? ++vxlans->max : 0;
}

static int full_error(struct error *error)
{
	return error_set(error, -ENOSPC,
		"no space for another remote end of VXLAN devices: the table holds at most %d",
		FIB_MAX_VTEPS);
}

static void start(struct fib *fib, uint32_t number, uint16_t vrf, const struct wire_addr *addr)
{
	struct vxlans *vxlans = &fib->vxlans;
	struct fib_vtep *shown = &vxlans->shown[number];

	*shown = (struct fib_vtep){.vrf = vrf, .is_ip6 = addr->family == 6};
	memcpy(shown->addr, addr->bytes, sizeof(shown->addr));
	vxlans->vtep[number].n_holds = 1;
	vxlans->n_vteps++;
	hash_table_insert(&vxlans->table, &vxlans->vtep[number].node,
		hash_of(vrf, addr->bytes, shown->is_ip6));
	follow(fib, shown);
}

int fib_vtep_hold(struct fib *fib, uint16_t vrf, const struct wire_addr *addr, uint32_t *vtep,
	struct error *error)
{
	if (!vrf_exists(fib, vrf) || (addr->family != 4 && addr->family != 6))
		return error_set(error, -EINVAL,
			"a remote end of a VXLAN device needs an address and a table");
	*vtep = fib_vtep_find(fib, vrf, addr);
	if (*vtep) {
		fib->vxlans.vtep[*vtep].n_holds++;
		return 0;
	}
	*vtep = take_number(fib);
	if (!*vtep)
		return full_error(error);
	start(fib, *vtep, vrf, addr);
	return 0;
}

// -errno with `error` set.
static int make_group(struct fib *fib, const uint32_t members[], unsigned n,
	struct fib_vtep_group **out, struct error *error)
{
	struct vxlans *vxlans = &fib->vxlans;

	for (unsigned i = 0; i < n; i++)
		if (!members[i] || members[i] > vxlans->max || vxlans->vtep[members[i]].group ||
			!vxlans->vtep[members[i]].n_holds)
			n = 0;
	if (!n || n > FIB_MAX_VTEP_GROUP)
		return error_set(error, -EINVAL,
			"a group of VXLAN remote ends has 1 to %d that are held",
			FIB_MAX_VTEP_GROUP);
	struct fib_vtep_group *group = malloc(sizeof(*group) + n * sizeof(group->vtep[0]));
	if (!group)
		return error_set(error, -ENOMEM,
			"not enough memory for a group of VXLAN remote ends");
	group->n = n;
	memcpy(group->vtep, members, n * sizeof(group->vtep[0]));
	for (unsigned i = 0; i < n; i++)
		vxlans->vtep[members[i]].n_holds++;
	*out = group;
	return 0;
}

static void release_members(struct fib *fib, const struct fib_vtep_group *group)
{
	for (unsigned i = 0; i < group->n; i++)
		fib_vtep_release(fib, group->vtep[i]);
}

int fib_vtep_hold_group(struct fib *fib, const uint32_t members[], unsigned n, uint32_t *vtep,
	struct error *error)
{
	struct vxlans *vxlans = &fib->vxlans;
	struct fib_vtep_group *group;
	int err = make_group(fib, members, n, &group, error);

	if (err)
		return err;
	*vtep = take_number(fib);
	if (!*vtep) {
		release_members(fib, group);
		free(group);
		return full_error(error);
	}
	vxlans->vtep[*vtep].group = group;
	vxlans->vtep[*vtep].n_holds = 1;
	vxlans->n_vteps++;
	vxlans->shown[*vtep] = (struct fib_vtep){.group = group};
	return 0;
}

int fib_vtep_set_group(struct fib *fib, uint32_t vtep, const uint32_t members[], unsigned n,
	struct error *error)
{
	struct fib_vtep_group *old = fib->vxlans.vtep[vtep].group;
	struct fib_vtep_group *group;
	int err = make_group(fib, members, n, &group, error);

	if (err)
		return err;
	fib->vxlans.vtep[vtep].group = group;
	__atomic_store_n(&fib->vxlans.shown[vtep].group, group, __ATOMIC_RELEASE);
	rcu_defer_wait(&fib->defer);
	release_members(fib, old);
	free(old);
	return 0;
}

void fib_vtep_release(struct fib *fib, uint32_t vtep)
{
	struct vxlans *vxlans = &fib->vxlans;
	struct vtep *of = &vxlans->vtep[vtep];

	assert(of->n_holds);
	if (--of->n_holds)
		return;
	vxlans->n_vteps--;
	if (of->group) {
		release_members(fib, of->group);
	} else {
		hash_table_remove(&vxlans->table, &of->node);
		lead(fib, &vxlans->shown[vtep], 0);
	}
	rcu_defer_add(&fib->defer,
		(struct rcu_block){.kind = DEFERRED_VTEP, .first = vtep, .n = 1});
	change_publish(fib, NULL, 0);
}

int fib_copy_vteps(struct fib *to, const struct fib *from, struct error *error)
{
	const struct vxlans *vxlans = &from->vxlans;

	assert(!to->vxlans.max);
	for (uint32_t number = 1; number <= vxlans->max; number++) {
		const struct fib_vtep *shown = &vxlans->shown[number];
		struct wire_addr addr = {.family = shown->is_ip6 ? 6 : 4};

		to->vxlans.max = number;
		// Groups are Linux's, which is not reloaded.
		if (!vxlans->vtep[number].n_holds || vxlans->vtep[number].group) {
			vteps_reuse(&to->vxlans, number);
			continue;
		}
		memcpy(addr.bytes, shown->addr, sizeof(addr.bytes));
		if (!vrf_exists(to, shown->vrf))
			return error_set(error, -ENOSPC,
				"the VRF of a remote end of VXLAN devices is gone");
		start(to, number, shown->vrf, &addr);
		to->vxlans.vtep[number].n_holds = vxlans->vtep[number].n_holds;
	}
	return 0;
}
