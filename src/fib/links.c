// What the table was told of links, and how lanes come to know. Control thread.
#include "fib/links.h"

#include "base/pages.h"
#include "fib/door.h"
#include "fib/neighbours.h"
#include "fib/table.h"

#include <errno.h>

enum {
	MTU_MIN = 68,
	MTU_MAX = 9600,
	TPID_CUSTOMER = 0x8100,
	TPID_SERVICE = 0x88a8,
	VID_MAX = 4094
};

static void write_in(struct fib_links *links, uint16_t link, const struct fib_link_in *in)
{
	uint64_t word;

	memcpy(&word, in, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)&links->in[link], word, __ATOMIC_RELEASE);
}

int link_table_open(struct fib_links *links)
{
	*links = (struct fib_links){
		.in = pages_alloc(FIB_MAX_LINKS * sizeof(*links->in)),
		.slot = pages_alloc(LINK_SLOTS * sizeof(*links->slot)),
		.macs = pages_alloc(FIB_MAX_LINKS * sizeof(*links->macs)),
		.link = pages_alloc(FIB_MAX_LINKS * sizeof(*links->link)),
	};
	if (!links->in || !links->slot || !links->macs || !links->link) {
		link_table_close(links);
		return -ENOMEM;
	}
	for (uint16_t port = 0; port < FIB_MAX_PORTS; port++)
		write_in(links, port, &(struct fib_link_in){.link = port});
	return 0;
}

void link_table_close(struct fib_links *links)
{
	pages_free(links->in, FIB_MAX_LINKS * sizeof(*links->in));
	pages_free(links->slot, LINK_SLOTS * sizeof(*links->slot));
	pages_free(links->macs, FIB_MAX_LINKS * sizeof(*links->macs));
	pages_free(links->link, FIB_MAX_LINKS * sizeof(*links->link));
}

struct fib_tags link_tags(const struct fib_link *link)
{
	struct fib_tags tags = {0};

	for (unsigned i = 0; i < link->n_tags; i++) {
		uint8_t *bytes = tags.bytes + 4 * i;
		bytes[0] = link->tag[i].tpid >> 8;
		bytes[1] = link->tag[i].tpid;
		bytes[2] = link->tag[i].vid >> 8;
		bytes[3] = link->tag[i].vid;
	}
	return tags;
}

static uint64_t key_of(const struct fib_link *link)
{
	const struct fib_tags tags = link_tags(link);

	return link_key(link->port, &tags);
}

// The slots of tags.

static void write_slot(struct fib_links *links, unsigned at, struct link_slot slot)
{
	word16 word;

	memcpy(&word, &slot, sizeof(word));
	word16_store(&links->slot[at], word);
}

// The slot of a key, or the first one free for it when there is none.
static unsigned find_slot(const struct fib_links *links, uint64_t key)
{
	unsigned at = link_place(key), first_left = LINK_SLOTS;

	for (unsigned i = 0; i < LINK_SLOTS; i++, at = (at + 1) % LINK_SLOTS) {
		const struct link_slot *slot = &links->slot[at];
		if (slot->key == key)
			return at;
		if (slot->key == SLOT_LEFT && first_left == LINK_SLOTS)
			first_left = at;
		if (slot->key == SLOT_EMPTY)
			return first_left == LINK_SLOTS ? at : first_left;
	}
	return first_left; // all are in use or left; at most half are in use
}

// Nothing is found beyond an empty slot, so the left ones before it may be empty as well.
static void leave_slot(struct fib_links *links, uint64_t key)
{
	unsigned at = find_slot(links, key);

	if (links->slot[(at + 1) % LINK_SLOTS].key != SLOT_EMPTY) {
		write_slot(links, at, (struct link_slot){.key = SLOT_LEFT});
		return;
	}
	write_slot(links, at, (struct link_slot){.key = SLOT_EMPTY});
	for (unsigned before = (at - 1) % LINK_SLOTS; links->slot[before].key == SLOT_LEFT;
		before = (before - 1) % LINK_SLOTS)
		write_slot(links, before, (struct link_slot){.key = SLOT_EMPTY});
}

// What is told.

static bool tags_are_sound(const struct fib_link *link)
{
	for (unsigned i = 0; i < link->n_tags; i++) {
		const struct fib_tag *tag = &link->tag[i];
		if (tag->tpid != TPID_CUSTOMER && tag->tpid != TPID_SERVICE)
			return false;
		if (!tag->vid || tag->vid > VID_MAX)
			return false;
	}
	return true;
}

// A port is a link of its own number; a VLAN has another, and tags of its own.
static bool place_is_sound(const struct fib_links *links, uint16_t link,
	const struct fib_link *settings)
{
	if (settings->port >= FIB_MAX_PORTS || settings->n_tags > FIB_MAX_TAGS)
		return false;
	if (!settings->n_tags)
		return link == settings->port;
	if (link == settings->port || !tags_are_sound(settings))
		return false;
	const uint64_t key = key_of(settings);
	const struct link_slot *slot = &links->slot[find_slot(links, key)];
	return slot->key != key || slot->link == link;
}

static bool is_sound(const struct fib *fib, uint16_t link, const struct fib_link *settings)
{
	return link < FIB_MAX_LINKS && settings->mtu >= MTU_MIN && settings->mtu <= MTU_MAX &&
	       settings->mtu6 <= settings->mtu && (!settings->mtu6 || settings->mtu6 >= MTU_MIN) &&
	       settings->n_macs <= FIB_LINK_MACS && fib_vrf_is_open(fib, settings->vrf) &&
	       place_is_sound(&fib->links, link, settings);
}

// Tells lanes of the tags to look for on a port.
static void count_tags(struct fib_links *links, uint8_t port)
{
	struct fib_link_in in = links->in[port];

	in.n_tags = 0;
	for (uint16_t i = 0; i < links->end; i++)
		if (links->link[i].is_told && links->link[i].told.port == port)
			in.n_tags = MAX_OF(in.n_tags, links->link[i].told.n_tags);
	write_in(links, port, &in);
}

static void write_macs(struct fib_links *links, uint16_t link)
{
	const struct fib_link *told = &links->link[link].told;
	uint64_t *mac = links->macs[link].mac;

	__atomic_store_n(&mac[0], link_mac_word(told->mac.bytes), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < FIB_LINK_MACS; i++) {
		uint64_t word = i < told->n_macs ? link_mac_word(told->macs[i].bytes) : 0;
		__atomic_store_n(&mac[1 + i], word, __ATOMIC_RELAXED);
	}
}

// Lets lanes take frames in by what was told: the tags come last, so that what they lead to is
// there.
static void show_to_lanes(struct fib_links *links, uint16_t link)
{
	const struct fib_link *told = &links->link[link].told;
	const struct fib_link_in in = {.flags = told->flags,
		.vrf = told->vrf,
		.n_macs = told->n_macs + !!told->n_tags,
		.n_tags = told->n_tags ? told->n_tags : links->in[link].n_tags,
		.link = link};

	write_macs(links, link);
	write_in(links, link, &in);
	if (!told->n_tags)
		return;
	const uint64_t key = key_of(told);
	write_slot(links, find_slot(links, key), (struct link_slot){key, link});
	if (links->in[told->port].n_tags < told->n_tags)
		count_tags(links, told->port);
}

// Lanes that know a link from frames just taken in drop them: a VLAN's number may be given to
// another.
static void hide_from_lanes(struct fib_links *links, uint16_t link)
{
	const struct fib_link *told = &links->link[link].told;

	struct fib_link_in in = {.flags = FIB_LINK_DOWN, .link = link};

	if (told->n_tags)
		leave_slot(links, key_of(told));
	else
		in.n_tags = links->in[link].n_tags;
	write_in(links, link, &in);
	if (told->n_tags && links->in[told->port].n_tags == told->n_tags)
		count_tags(links, told->port);
}

void fib_link_delete(struct fib *fib, uint16_t link)
{
	if (!fib_link(fib, link))
		return;
	fib->links.link[link].is_told = false;
	hops_rewrite_link(&fib->hops, link);
	hide_from_lanes(&fib->links, link);
}

const struct fib_link *fib_link(const struct fib *fib, uint16_t link)
{
	if (link >= FIB_MAX_LINKS || !fib->links.link[link].is_told)
		return NULL;
	return &fib->links.link[link].told;
}

// Another port or other tags under the same number. A lane may have judged a packet by the old ones
// and write its header by the new ones, so there is a time in between when nothing leaves there,
// until no lane can remember.
static void forget_place(struct fib *fib, uint16_t link)
{
	fib_link_delete(fib, link);
	if (fib->retire.door)
		door_wait(fib->retire.door, door_token(fib->retire.door));
}

int fib_link_set(struct fib *fib, uint16_t link, const struct fib_link *settings)
{
	struct fib_links *links = &fib->links;

	if (!is_sound(fib, link, settings))
		return -EINVAL;
	struct link *own = &links->link[link];
	if (hosts_follow_link(fib, link, settings->vrf))
		return -ENOSPC;
	if (own->was_told && key_of(&own->told) != key_of(settings))
		forget_place(fib, link);
	own->told = *settings;
	own->is_told = own->was_told = true;
	links->end = MAX_OF(links->end, link + 1);
	hops_rewrite_link(&fib->hops, link);
	show_to_lanes(links, link);
	return 0;
}
