// Interface settings, and their publication to workers (control thread); how workers check an
// interface's additional MAC addresses.
#include "iface/iface.h"

#include "base/bits.h"
#include "base/pages.h"
#include "iface/slots.h"

#include <errno.h>

enum {
	MTU_MIN = 68,
	MTU_MAX = 9600,
	TPID_CUSTOMER = 0x8100,
	TPID_SERVICE = 0x88a8,
	VID_MAX = 4094
};

struct iface_entry {
	struct iface latest; // kept after the interface is deleted
	bool is_current, was_set;
	bool is_tagged;                        // workers find it by its tags
	uint32_t n_tagged[IFACE_MAX_TAGS + 1]; // VLANs on it that workers can find
};

// An interface's addresses, its own one first. 0: none; otherwise the address with MAC_SET.
static const uint64_t MAC_SET = 1ull << 63;
struct iface_macs {
	uint64_t mac[IFACE_MACS + 1];
};

static uint64_t mac_word(const uint8_t mac[6])
{
	return MAC_SET | (uint64_t)load32(mac) << 16 | load16(mac + 4);
}

static void write_in(struct iface_table *table, uint16_t iface, const struct iface_in *in)
{
	uint64_t word;

	memcpy(&word, in, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)&table->in[iface], word, __ATOMIC_RELEASE);
}

static void *alloc_sparse(size_t bytes)
{
	void *memory = pages_alloc(bytes);

	pages_keep_small(memory, bytes);
	return memory;
}

int iface_table_open(struct iface_table *table)
{
	*table = (struct iface_table){
		.in = alloc_sparse(IFACE_MAX * sizeof(*table->in)),
		.slot = alloc_sparse(IFACE_SLOTS * sizeof(*table->slot)),
		.macs = alloc_sparse(IFACE_MAX * sizeof(*table->macs)),
		.entry = alloc_sparse(IFACE_MAX * sizeof(*table->entry)),
	};
	if (!table->in || !table->slot || !table->macs || !table->entry) {
		iface_table_close(table);
		return -ENOMEM;
	}
	table->view = (struct iface_view){table->in, table->slot, table->macs};
	for (uint16_t port = 0; port < IFACE_MAX_PORTS; port++)
		write_in(table, port, &(struct iface_in){.iface = port});
	return 0;
}

void iface_table_close(struct iface_table *table)
{
	pages_free(table->in, IFACE_MAX * sizeof(*table->in));
	pages_free(table->slot, IFACE_SLOTS * sizeof(*table->slot));
	pages_free(table->macs, IFACE_MAX * sizeof(*table->macs));
	pages_free(table->entry, IFACE_MAX * sizeof(*table->entry));
}

size_t iface_table_bytes(const struct iface_table *table)
{
	return table->end * sizeof(*table->entry);
}

struct iface_tags iface_wire_tags(const struct iface *iface)
{
	struct iface_tags tags = {0};

	for (unsigned i = 0; i < iface->n_tags; i++) {
		uint8_t *bytes = tags.bytes + 4 * i;
		bytes[0] = iface->tag[i].tpid >> 8;
		bytes[1] = iface->tag[i].tpid;
		bytes[2] = iface->tag[i].vid >> 8;
		bytes[3] = iface->tag[i].vid;
	}
	return tags;
}

static struct slot_key key_of(const struct iface *iface)
{
	const struct iface_tags tags = iface_wire_tags(iface);

	return slot_key(iface->port, &tags);
}

static bool tags_are_sound(const struct iface *iface)
{
	for (unsigned i = 0; i < iface->n_tags; i++) {
		const struct iface_tag *tag = &iface->tag[i];
		if (tag->tpid != TPID_CUSTOMER && tag->tpid != TPID_SERVICE)
			return false;
		if (!tag->vid || tag->vid > VID_MAX)
			return false;
	}
	return true;
}

static bool tunnel_is_sound(const struct iface_tunnel *tunnel)
{
	const uint8_t family = tunnel->local.family;

	return (family == 4 || family == 6) && tunnel->remote.family == family &&
	       !wire_addr_equal(&tunnel->local, &tunnel->remote) && tunnel->vrf < IFACE_MAX_VRFS &&
	       tunnel->kind <= IFACE_GRE &&
	       tunnel->flags & (IFACE_TUNNEL_IP4 | IFACE_TUNNEL_IP6 | IFACE_TUNNEL_MPLS) &&
	       (!(tunnel->flags & IFACE_TUNNEL_UDP) ||
		       (tunnel->kind == IFACE_IPIP && tunnel->dest_port));
}

// Whether a VLAN may be on this bridge.
static bool bridge_is_sound(const struct iface_table *table, const struct iface *vlan)
{
	const struct iface *bridge = iface_current(table, vlan->port);

	return bridge && bridge->is_bridge && !bridge->n_tags && !iface_carries_frames(bridge) &&
	       vlan->n_tags == 1;
}

static bool tags_are_free(const struct iface_table *table, uint16_t iface,
	const struct iface *settings)
{
	const uint16_t found = slots_find(table, key_of(settings));

	return tags_are_sound(settings) && (found == IFACE_NONE || found == iface);
}

static bool frames_are_sound(const struct iface *settings)
{
	const struct iface_tunnel *tunnel = &settings->tunnel;
	const uint8_t family = tunnel->local.family;

	if (!settings->is_bridge || (family != 4 && family != 6) || tunnel->vrf >= IFACE_MAX_VRFS ||
		tunnel->vxlan >= IFACE_MAX_VXLANS)
		return false;
	if (tunnel->kind == IFACE_GRETAP)
		return tunnel->remote.family == family;
	return tunnel->key <= IFACE_MAX_VNI && tunnel->dest_port &&
	       tunnel->source_port <= tunnel->last_source_port &&
	       tunnel->last_source_port - tunnel->source_port < UINT16_MAX;
}

// A port's index is its own; a VLAN needs another index and unique tags, a bridge, a VLAN on one or
// a tunnel one of no port.
static bool place_is_sound(const struct iface_table *table, uint16_t iface,
	const struct iface *settings)
{
	const bool is_on_bridge = settings->is_bridge && settings->n_tags;

	if (settings->n_tags > IFACE_MAX_TAGS)
		return false;
	if (iface_is_tunnel(settings) &&
		(settings->is_bridge || !tunnel_is_sound(&settings->tunnel)))
		return false;
	if (iface_carries_frames(settings) && (is_on_bridge || !frames_are_sound(settings)))
		return false;
	if (is_on_bridge)
		return iface >= IFACE_MAX_PORTS && iface != settings->port &&
		       bridge_is_sound(table, settings) && tags_are_free(table, iface, settings);
	if (settings->is_bridge || iface_is_tunnel(settings))
		return iface >= IFACE_MAX_PORTS && !settings->n_tags && !settings->port;
	if (settings->port >= IFACE_MAX_PORTS)
		return false;
	if (!settings->n_tags)
		return iface == settings->port;
	return iface != settings->port && tags_are_free(table, iface, settings);
}

bool iface_is_sound(const struct iface_table *table, uint16_t iface, const struct iface *settings)
{
	return iface < IFACE_MAX && settings->mtu >= MTU_MIN && settings->mtu <= MTU_MAX &&
	       settings->mtu6 <= settings->mtu && (!settings->mtu6 || settings->mtu6 >= MTU_MIN) &&
	       settings->vrf < IFACE_MAX_VRFS && settings->n_macs <= IFACE_MACS &&
	       place_is_sound(table, iface, settings);
}

bool iface_moves(const struct iface_table *table, uint16_t iface, const struct iface *settings)
{
	const struct iface_entry *entry = &table->entry[iface];
	const struct slot_key old = key_of(&entry->latest), key = key_of(settings);

	return entry->was_set &&
	       (old.tags != key.tags || old.port != key.port ||
		       entry->latest.is_bridge != settings->is_bridge ||
		       iface_is_tunnel(&entry->latest) != iface_is_tunnel(settings) ||
		       iface_carries_frames(&entry->latest) != iface_carries_frames(settings));
}

void iface_set(struct iface_table *table, uint16_t iface, const struct iface *settings)
{
	table->entry[iface].latest = *settings;
	table->entry[iface].is_current = table->entry[iface].was_set = true;
	table->end = MAX_OF(table->end, iface + 1u);
}

void iface_set_vrf(struct iface_table *table, uint16_t iface, uint16_t vrf)
{
	table->entry[iface].latest.vrf = vrf;
}

void iface_delete(struct iface_table *table, uint16_t iface)
{
	table->entry[iface].is_current = false;
}

const struct iface *iface_current(const struct iface_table *table, uint16_t iface)
{
	if (iface >= IFACE_MAX || !table->entry[iface].is_current)
		return NULL;
	return &table->entry[iface].latest;
}

const struct iface *iface_latest(const struct iface_table *table, uint16_t iface)
{
	return table->entry[iface].was_set ? &table->entry[iface].latest : NULL;
}

uint16_t iface_vrf(const struct iface_table *table, uint16_t iface)
{
	return table->entry[iface].latest.vrf;
}

// Publication.

// Counts a VLAN that workers can find now (1), or no longer (-1), and publishes how many tags they
// must look for on its port or bridge.
static void count_tagged(struct iface_table *table, const struct iface *vlan, int change)
{
	uint32_t *n_tagged = table->entry[vlan->port].n_tagged;
	struct iface_in in = table->in[vlan->port];
	unsigned most = IFACE_MAX_TAGS;

	n_tagged[vlan->n_tags] += change;
	while (most && !n_tagged[most])
		most--;
	if (in.n_tags == most)
		return;
	in.n_tags = most;
	write_in(table, vlan->port, &in);
}

static void write_macs(struct iface_table *table, uint16_t iface)
{
	const struct iface *latest = &table->entry[iface].latest;
	uint64_t *mac = table->macs[iface].mac;

	__atomic_store_n(&mac[0], mac_word(latest->mac.bytes), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < IFACE_MACS; i++) {
		uint64_t word = i < latest->n_macs ? mac_word(latest->macs[i].bytes) : 0;
		__atomic_store_n(&mac[1 + i], word, __ATOMIC_RELAXED);
	}
}

static enum iface_kind kind_of(const struct iface *iface)
{
	if (iface->n_tags)
		return IFACE_VLAN;
	if (iface_is_tunnel(iface))
		return IFACE_TUNNEL;
	return iface->is_bridge ? IFACE_BRIDGE : IFACE_PORT;
}

// The tags are last, so that what they lead to is already there.
static void show(struct iface_table *table, uint16_t iface)
{
	struct iface_entry *entry = &table->entry[iface];
	const struct iface *latest = &entry->latest;
	const struct iface_in in = {.flags = latest->flags,
		.vrf = latest->vrf,
		.iface = iface,
		.n_macs = latest->n_macs + !!latest->n_tags,
		.n_tags = latest->n_tags ? latest->n_tags : table->in[iface].n_tags,
		.rpf4 = latest->rpf4,
		.kind = kind_of(latest)};

	write_macs(table, iface);
	write_in(table, iface, &in);
	if (!latest->n_tags || entry->is_tagged)
		return;
	slots_put(table, key_of(latest), iface);
	entry->is_tagged = true;
	count_tagged(table, latest, 1);
}

static void hide(struct iface_table *table, uint16_t iface)
{
	struct iface_entry *entry = &table->entry[iface];
	struct iface_in in = {.flags = IFACE_DOWN, .iface = iface};

	if (entry->is_tagged)
		slots_remove(table, key_of(&entry->latest));
	else
		in.n_tags = table->in[iface].n_tags;
	write_in(table, iface, &in);
	if (entry->is_tagged)
		count_tagged(table, &entry->latest, -1);
	entry->is_tagged = false;
}

void iface_publish(struct iface_table *table, uint16_t iface)
{
	if (table->entry[iface].is_current)
		show(table, iface);
	else
		hide(table, iface);
}

bool iface_has_mac(const struct iface_view *view, uint16_t iface, const uint8_t mac[6])
{
	const uint64_t wanted = mac_word(mac);
	const struct iface_macs *macs = &view->macs[iface];

	for (unsigned i = 0; i < ARRAY_LEN(macs->mac); i++)
		if (__atomic_load_n(&macs->mac[i], __ATOMIC_RELAXED) == wanted)
			return true;
	return false;
}
