// Interface settings, and their publication to workers (control thread); how workers find a frame's
// interface by its tags and check an interface's additional MAC addresses.
#include "fib/ifaces.h"

#include "base/pages.h"
#include "fib/table.h"

#include <errno.h>

enum {
	MTU_MIN = 68,
	MTU_MAX = 9600,
	TPID_CUSTOMER = 0x8100,
	TPID_SERVICE = 0x88a8,
	VID_MAX = 4094
};

static void write_in(struct fib_ifaces *ifaces, uint16_t iface, const struct fib_iface_in *in)
{
	uint64_t word;

	memcpy(&word, in, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)&ifaces->in[iface], word, __ATOMIC_RELEASE);
}

int iface_table_open(struct fib_ifaces *ifaces)
{
	*ifaces = (struct fib_ifaces){
		.in = pages_alloc(FIB_MAX_IFACES * sizeof(*ifaces->in)),
		.slot = pages_alloc(IFACE_SLOTS * sizeof(*ifaces->slot)),
		.macs = pages_alloc(FIB_MAX_IFACES * sizeof(*ifaces->macs)),
		.iface = pages_alloc(FIB_MAX_IFACES * sizeof(*ifaces->iface)),
	};
	if (!ifaces->in || !ifaces->slot || !ifaces->macs || !ifaces->iface) {
		iface_table_close(ifaces);
		return -ENOMEM;
	}
	for (uint16_t port = 0; port < FIB_MAX_PORTS; port++)
		write_in(ifaces, port, &(struct fib_iface_in){.iface = port});
	return 0;
}

void iface_table_close(struct fib_ifaces *ifaces)
{
	pages_free(ifaces->in, FIB_MAX_IFACES * sizeof(*ifaces->in));
	pages_free(ifaces->slot, IFACE_SLOTS * sizeof(*ifaces->slot));
	pages_free(ifaces->macs, FIB_MAX_IFACES * sizeof(*ifaces->macs));
	pages_free(ifaces->iface, FIB_MAX_IFACES * sizeof(*ifaces->iface));
}

struct fib_tags iface_tags(const struct fib_iface *iface)
{
	struct fib_tags tags = {0};

	for (unsigned i = 0; i < iface->n_tags; i++) {
		uint8_t *bytes = tags.bytes + 4 * i;
		bytes[0] = iface->tag[i].tpid >> 8;
		bytes[1] = iface->tag[i].tpid;
		bytes[2] = iface->tag[i].vid >> 8;
		bytes[3] = iface->tag[i].vid;
	}
	return tags;
}

static uint64_t key_of(const struct fib_iface *iface)
{
	const struct fib_tags tags = iface_tags(iface);

	return iface_key(iface->port, &tags);
}

// Hash slots of tags.

static void write_slot(struct fib_ifaces *ifaces, unsigned at, struct iface_slot slot)
{
	word16 word;

	memcpy(&word, &slot, sizeof(word));
	word16_store(&ifaces->slot[at], word);
}

// The slot of a key, or the first one free for it if there is none.
static unsigned find_slot(const struct fib_ifaces *ifaces, uint64_t key)
{
	unsigned at = iface_place(key), first_left = IFACE_SLOTS;

	for (unsigned i = 0; i < IFACE_SLOTS; i++, at = (at + 1) % IFACE_SLOTS) {
		const struct iface_slot *slot = &ifaces->slot[at];
		if (slot->key == key)
			return at;
		if (slot->key == SLOT_LEFT && first_left == IFACE_SLOTS)
			first_left = at;
		if (slot->key == SLOT_EMPTY)
			return first_left == IFACE_SLOTS ? at : first_left;
	}
	return first_left; // no slot is empty; at most half are in use
}

// A search ends at an empty slot, so deleted slots before one may become empty, too.
static void leave_slot(struct fib_ifaces *ifaces, uint64_t key)
{
	unsigned at = find_slot(ifaces, key);

	if (ifaces->slot[(at + 1) % IFACE_SLOTS].key != SLOT_EMPTY) {
		write_slot(ifaces, at, (struct iface_slot){.key = SLOT_LEFT});
		return;
	}
	write_slot(ifaces, at, (struct iface_slot){.key = SLOT_EMPTY});
	for (unsigned before = (at - 1) % IFACE_SLOTS; ifaces->slot[before].key == SLOT_LEFT;
		before = (before - 1) % IFACE_SLOTS)
		write_slot(ifaces, before, (struct iface_slot){.key = SLOT_EMPTY});
}

// Settings.

static bool tags_are_sound(const struct fib_iface *iface)
{
	for (unsigned i = 0; i < iface->n_tags; i++) {
		const struct fib_tag *tag = &iface->tag[i];
		if (tag->tpid != TPID_CUSTOMER && tag->tpid != TPID_SERVICE)
			return false;
		if (!tag->vid || tag->vid > VID_MAX)
			return false;
	}
	return true;
}

// A port's interface number is its index; a VLAN needs another number and unique tags.
static bool place_is_sound(const struct fib_ifaces *ifaces, uint16_t iface,
	const struct fib_iface *settings)
{
	if (settings->port >= FIB_MAX_PORTS || settings->n_tags > FIB_MAX_TAGS)
		return false;
	if (!settings->n_tags)
		return iface == settings->port;
	if (iface == settings->port || !tags_are_sound(settings))
		return false;
	const uint64_t key = key_of(settings);
	const struct iface_slot *slot = &ifaces->slot[find_slot(ifaces, key)];
	return slot->key != key || slot->iface == iface;
}

static bool is_sound(const struct fib *fib, uint16_t iface, const struct fib_iface *settings)
{
	return iface < FIB_MAX_IFACES && settings->mtu >= MTU_MIN && settings->mtu <= MTU_MAX &&
	       settings->mtu6 <= settings->mtu && (!settings->mtu6 || settings->mtu6 >= MTU_MIN) &&
	       settings->n_macs <= FIB_IFACE_MACS && fib_vrf_is_open(fib, settings->vrf) &&
	       place_is_sound(&fib->ifaces, iface, settings);
}

// Publishes how many tags workers must look for on a port.
static void count_tags(struct fib_ifaces *ifaces, uint8_t port)
{
	struct fib_iface_in in = ifaces->in[port];

	in.n_tags = 0;
	for (uint16_t i = 0; i < ifaces->end; i++)
		if (ifaces->iface[i].is_reported && ifaces->iface[i].reported.port == port)
			in.n_tags = MAX_OF(in.n_tags, ifaces->iface[i].reported.n_tags);
	write_in(ifaces, port, &in);
}

static void write_macs(struct fib_ifaces *ifaces, uint16_t iface)
{
	const struct fib_iface *reported = &ifaces->iface[iface].reported;
	uint64_t *mac = ifaces->macs[iface].mac;

	__atomic_store_n(&mac[0], iface_mac_word(reported->mac.bytes), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < FIB_IFACE_MACS; i++) {
		uint64_t word = i < reported->n_macs ? iface_mac_word(reported->macs[i].bytes) : 0;
		__atomic_store_n(&mac[1 + i], word, __ATOMIC_RELAXED);
	}
}

// Publishes an interface to workers. The tags are last, so that what they lead to is already there.
static void show_to_workers(struct fib_ifaces *ifaces, uint16_t iface)
{
	const struct fib_iface *reported = &ifaces->iface[iface].reported;
	const struct fib_iface_in in = {.flags = reported->flags,
		.vrf = reported->vrf,
		.n_macs = reported->n_macs + !!reported->n_tags,
		.n_tags = reported->n_tags ? reported->n_tags : ifaces->in[iface].n_tags,
		.iface = iface};

	write_macs(ifaces, iface);
	write_in(ifaces, iface, &in);
	if (!reported->n_tags)
		return;
	const uint64_t key = key_of(reported);
	write_slot(ifaces, find_slot(ifaces, key), (struct iface_slot){key, iface});
	if (ifaces->in[reported->port].n_tags < reported->n_tags)
		count_tags(ifaces, reported->port);
}

// Workers that have just looked up the interface for a received frame drop it: its number may be
// given to another VLAN.
static void hide_from_workers(struct fib_ifaces *ifaces, uint16_t iface)
{
	const struct fib_iface *reported = &ifaces->iface[iface].reported;

	struct fib_iface_in in = {.flags = FIB_IFACE_DOWN, .iface = iface};

	if (reported->n_tags)
		leave_slot(ifaces, key_of(reported));
	else
		in.n_tags = ifaces->in[iface].n_tags;
	write_in(ifaces, iface, &in);
	if (reported->n_tags && ifaces->in[reported->port].n_tags == reported->n_tags)
		count_tags(ifaces, reported->port);
}

void fib_iface_delete(struct fib *fib, uint16_t iface)
{
	if (!fib_iface(fib, iface))
		return;
	fib->ifaces.iface[iface].is_reported = false;
	hops_rewrite_iface(&fib->hops, iface);
	hide_from_workers(&fib->ifaces, iface);
}

const struct fib_iface *fib_iface(const struct fib *fib, uint16_t iface)
{
	if (iface >= FIB_MAX_IFACES || !fib->ifaces.iface[iface].is_reported)
		return NULL;
	return &fib->ifaces.iface[iface].reported;
}

// The port or the tags of a number change. A worker may have checked a packet with the old ones and
// would write its header with the new ones, so nothing is sent there until a grace period has
// passed.
static void forget_place(struct fib *fib, uint16_t iface)
{
	fib_iface_delete(fib, iface);
	rcu_defer_wait(&fib->defer);
}

int fib_iface_set(struct fib *fib, uint16_t iface, const struct fib_iface *settings)
{
	struct fib_ifaces *ifaces = &fib->ifaces;

	if (!is_sound(fib, iface, settings))
		return -EINVAL;
	struct iface *own = &ifaces->iface[iface];
	if (hosts_follow_iface(fib, iface, settings->vrf))
		return -ENOSPC;
	if (own->was_reported && key_of(&own->reported) != key_of(settings))
		forget_place(fib, iface);
	own->reported = *settings;
	own->is_reported = own->was_reported = true;
	ifaces->end = MAX_OF(ifaces->end, iface + 1);
	hops_rewrite_iface(&fib->hops, iface);
	show_to_workers(ifaces, iface);
	return 0;
}

// Lookups of workers.

static struct iface_slot read_slot(const struct iface_slot *from)
{
	word16 word = word16_load(from);
	struct iface_slot slot;

	memcpy(&slot, &word, sizeof(slot));
	return slot;
}

uint16_t fib_iface_tagged(const struct fib_view *view, uint8_t port, const struct fib_tags *tags)
{
	const uint64_t key = iface_key(port, tags);
	const unsigned place = iface_place(key);

	for (unsigned i = 0; i < IFACE_SLOTS; i++) {
		struct iface_slot slot = read_slot(&view->ifaces->slot[(place + i) % IFACE_SLOTS]);

		if (slot.key == key)
			return slot.iface;
		if (slot.key == SLOT_EMPTY)
			break;
	}
	return FIB_NO_IFACE_IN;
}

bool fib_iface_has_mac(const struct fib_view *view, uint16_t iface, const uint8_t mac[6])
{
	const uint64_t wanted = iface_mac_word(mac);
	const struct iface_macs *macs = &view->ifaces->macs[iface];

	for (unsigned i = 0; i < ARRAY_LEN(macs->mac); i++)
		if (__atomic_load_n(&macs->mac[i], __ATOMIC_RELAXED) == wanted)
			return true;
	return false;
}
