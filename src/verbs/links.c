// Links and VRFs by name. Control thread.
#include "verbs/inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char MAIN[] = "main";

const char *link_word(const struct verbs_house *house, unsigned link)
{
	const char *name =
		house->sync && link < FIB_MAX_LINKS ? sync_link_name(house->sync, link) : NULL;

	return name ? name : port_word(house, link);
}

const char *port_of_link(const struct verbs_house *house, unsigned link)
{
	const struct fib_link *told = link < FIB_MAX_LINKS ? fib_link(house->fib, link) : NULL;

	return port_word(house, told ? told->port : link);
}

const char *vrf_word(const struct verbs_house *house, unsigned vrf)
{
	if (!vrf)
		return MAIN;
	return house->sync && vrf < FIB_MAX_VRFS ? sync_vrf_name(house->sync, vrf) : NULL;
}

int link_find(const struct verbs_house *house, const char *name, int *out, struct complaint *why)
{
	if (!name)
		return 0;
	for (unsigned link = 0; link < FIB_MAX_LINKS; link++) {
		const char *has = fib_link(house->fib, link) ? link_word(house, link) : NULL;

		if (has && !strcmp(has, name)) {
			*out = link;
			return 0;
		}
	}
	return complain(why, -EINVAL,
		house->sync ? "parameter \"port\" is no port's name and no VLAN interface's; 'dl3 "
			      "show mirror' lists them"
			    : "parameter \"port\" is no port's name; 'dl3 show ports' lists them");
}

int vrf_find(const struct verbs_house *house, const char *name, uint8_t *out, struct complaint *why)
{
	if (!name || !strcmp(name, MAIN))
		return 0;
	if (!house->sync)
		return complain(why, -EINVAL,
			"there is no VRF \"%.60s\": the file has no key \"linux\"", name);
	int vrf = sync_vrf_find(house->sync, name);
	if (vrf < 0)
		return complain(why, -EINVAL,
			"\"%.60s\" is no VRF device in the twins' namespace; 'dl3 show mirror' "
			"lists them",
			name);
	*out = vrf;
	return 0;
}

json_t *tags_json(const struct fib_link *link)
{
	json_t *list = json_array();
	char text[24];

	for (unsigned i = 0; i < link->n_tags; i++) {
		snprintf(text, sizeof(text), "%s %u",
			link->tag[i].tpid == 0x88a8 ? "802.1ad" : "802.1Q", link->tag[i].vid);
		json_array_append_new(list, json_string(text));
	}
	return list;
}
