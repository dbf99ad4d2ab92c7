// The remote ends of VXLAN devices of the configuration file: held while the file has them. Control
// thread.
#include "api/bridges.h"

#include "base/log.h"

#include <errno.h>

#include <stdlib.h>
#include <string.h>

static uint16_t member_of(const struct config_vxlan *vxlan)
{
	return MAC_FIRST_TUNNEL + vxlan->tunnel.vxlan;
}

static void release(struct api_ctx *ctx, struct vxlan_ends *ends)
{
	for (unsigned i = 0; i < ends->n; i++) {
		mac_remote_release(ctx->bridges->table, ends->end[i].remote);
		fib_vtep_release(ctx->fib, ends->end[i].vtep);
	}
	free(ends->end);
	*ends = (struct vxlan_ends){.n = 0};
}

static int hold_one(struct api_ctx *ctx, const struct config_vxlan *vxlan, unsigned i,
	struct error *error)
{
	struct vxlan_ends *next = &ctx->bridges->next_ends;
	struct vxlan_end *end = &next->end[next->n];
	struct mac_remote remote = {.member = member_of(vxlan)};
	int err = fib_vtep_hold(ctx->fib, vxlan->tunnel.vrf, &vxlan->remote[i], &end->vtep, error);

	if (err)
		return err;
	remote.vtep = end->vtep;
	end->member = remote.member;
	err = mac_remote_hold(ctx->bridges->table, &remote, &end->remote, error);
	if (err)
		fib_vtep_release(ctx->fib, end->vtep);
	else
		next->n++;
	return err;
}

int vxlans_hold(struct api_ctx *ctx, const struct config *next, struct error *error)
{
	struct vxlan_ends *ends = &ctx->bridges->next_ends;
	unsigned n;

	config_bridges(next, &n);
	*ends = (struct vxlan_ends){.end = calloc(n * CONFIG_MAX_REMOTES + 1, sizeof(*ends->end))};
	if (!ends->end)
		return error_set(error, -ENOMEM, "not enough memory for VXLAN remote ends");
	for (unsigned i = 0; i < n; i++) {
		const struct config_vxlan *vxlan = config_vxlan(next, i);

		for (unsigned k = 0; vxlan && k < vxlan->n_remotes; k++) {
			int err = hold_one(ctx, vxlan, k, error);
			if (err) {
				release(ctx, ends);
				return err;
			}
		}
	}
	return 0;
}

void vxlans_drop(struct api_ctx *ctx)
{
	release(ctx, &ctx->bridges->next_ends);
}

static void set_flood(struct api_ctx *ctx, uint16_t member, const struct vxlan_ends *ends)
{
	uint32_t remote[CONFIG_MAX_REMOTES];
	struct error error;
	unsigned n = 0;

	for (unsigned i = 0; i < ends->n; i++)
		if (ends->end[i].member == member)
			remote[n++] = ends->end[i].remote;
	if (mac_set_flood(ctx->bridges->table, member, remote, n, &error))
		log_warn("%s; its floods go where they went before", error.text);
}

void vxlans_apply(struct api_ctx *ctx)
{
	const struct vxlan_ends *now = &ctx->bridges->ends, *next = &ctx->bridges->next_ends;

	for (unsigned i = 0; i < now->n; i++)
		set_flood(ctx, now->end[i].member, next);
	for (unsigned i = 0; i < next->n; i++)
		set_flood(ctx, next->end[i].member, next);
}

void vxlans_finish(struct api_ctx *ctx)
{
	release(ctx, &ctx->bridges->ends);
	ctx->bridges->ends = ctx->bridges->next_ends;
	ctx->bridges->next_ends = (struct vxlan_ends){.n = 0};
}

uint32_t vxlans_find(void *ctx_, uint16_t member, const struct wire_addr *end)
{
	const struct api_ctx *ctx = ctx_;
	const struct mac_remote remote = {.vtep = fib_vtep_find(ctx->fib, 0, end),
		.member = member};

	return remote.vtep ? mac_remote_find(ctx->bridges->table, &remote) : 0;
}

void vxlans_free_list(struct mac_bridge *list, unsigned n)
{
	for (unsigned i = 0; list && i < n; i++)
		free(list[i].member);
	free(list);
}

struct mac_bridge *vxlans_list(const struct config *config, unsigned *n)
{
	const struct mac_bridge *bridges = config_bridges(config, n);
	struct mac_bridge *list = calloc(*n + 1, sizeof(*list));

	for (unsigned i = 0; list && i < *n; i++) {
		const struct config_vxlan *vxlan = config_vxlan(config, i);

		list[i] = bridges[i];
		list[i].member = calloc(bridges[i].n_members + 1, sizeof(*list[i].member));
		if (!list[i].member) {
			vxlans_free_list(list, i);
			return NULL;
		}
		memcpy(list[i].member, bridges[i].member,
			bridges[i].n_members * sizeof(*list[i].member));
		if (vxlan)
			list[i].member[list[i].n_members++] =
				(struct mac_member){.port = member_of(vxlan),
					.flags = MAC_LEARNS | MAC_FLOODS | MAC_LEARNS_REMOTES};
	}
	return list;
}
