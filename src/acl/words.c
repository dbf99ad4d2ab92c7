// The words of rules. Any thread.
#include "acl/words.h"

#include "acl/acl.h"

#include "base/bits.h"
#include "wire/headers.h"
#include "wire/transport.h"

#include <string.h>

static const struct word protocols_rows[] = {
	{"any", ACL_ANY_PROTOCOL},
	{"tcp", WIRE_PROTO_TCP},
	{"udp", WIRE_PROTO_UDP},
	{"icmp", WIRE_PROTO_ICMP4},
	{"icmp6", WIRE_PROTO_ICMP6},
	{"icmpv6", WIRE_PROTO_ICMP6}, // as in flows; rules are printed with the first name
	{"sctp", WIRE_PROTO_SCTP},
	{"dccp", WIRE_PROTO_DCCP},
	{"udplite", WIRE_PROTO_UDP_LITE},
	{"esp", WIRE_PROTO_ESP},
	{"ah", WIRE_PROTO_AH},
	{"gre", 47},
	{"ospf", 89},
};

static const struct word effects_rows[] = {
	{"permit", ACL_PERMIT},
	{"deny", ACL_DENY},
	{"reject", ACL_REJECT},
	{"punt", ACL_PUNT},
};

static const struct word fragments_rows[] = {
	{"none", 1 << WIRE_FRAGMENT_NONE},
	{"first", 1 << WIRE_FRAGMENT_FIRST},
	{"later", 1 << WIRE_FRAGMENT_LATER},
	{"any", 1 << WIRE_FRAGMENT_FIRST | 1 << WIRE_FRAGMENT_LATER},
};

static const struct word families_rows[] = {{"ipv4", 4}, {"ipv6", 6}};
static const struct word flags_rows[] = {
	{"fin", 1},
	{"syn", 2},
	{"rst", 4},
	{"psh", 8},
	{"ack", 16},
	{"urg", 32},
	{"ece", 64},
	{"cwr", 128},
};
static const struct word truths_rows[] = {{"false", 0}, {"true", 1}};

const struct words acl_protocols = {protocols_rows, ARRAY_LEN(protocols_rows)};
const struct words acl_effects = {effects_rows, ARRAY_LEN(effects_rows)};
const struct words acl_fragments = {fragments_rows, ARRAY_LEN(fragments_rows)};
const struct words acl_families = {families_rows, ARRAY_LEN(families_rows)};
const struct words acl_flags = {flags_rows, ARRAY_LEN(flags_rows)};
const struct words acl_truths = {truths_rows, ARRAY_LEN(truths_rows)};

int words_find(const struct words *words, const char *text, size_t length)
{
	for (size_t i = 0; i < words->n; i++)
		if (strlen(words->row[i].text) == length &&
			!strncmp(words->row[i].text, text, length))
			return words->row[i].value;
	return -1;
}

const char *words_text(const struct words *words, unsigned value)
{
	for (size_t i = 0; i < words->n; i++)
		if (words->row[i].value == value)
			return words->row[i].text;
	return NULL;
}
