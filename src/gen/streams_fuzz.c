// Arbitrary JSON as a list of streams: either streams whose every frame can be built, or one error
// message.
#include "gen/frame.h"

#include "base/bits.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct gen_port ports[] = {
	{"left", {{2, 0, 0, 0, 0, 0x11}}, 1e10, 1500},
	{"right", {{2, 0, 0, 0, 0, 0x12}}, 0, 9600},
};

static void want(bool holds)
{
	if (!holds)
		abort();
}

// The first number of a counting field is not accessible here, but it can be checked that the last
// one fits.
static void check_stream(const struct gen_stream *s)
{
	static uint8_t frame[GEN_MAX_SIZE];
	struct wire_recipe recipe = s->recipe;

	want(s->name[0] && strnlen(s->name, GEN_NAME_MAX) < GEN_NAME_MAX);
	want(s->n_flows >= 1 && s->n_flows <= gen_most_flows(s));
	if (s->capture.path[0])
		return;
	want(s->n_sizes >= 1 && s->n_sizes <= GEN_MAX_SIZES);
	for (unsigned i = 0; i < s->n_sizes; i++) {
		want(s->sizes[i].weight >= 1 && s->sizes[i].weight <= 1000);
		want(s->sizes[i].bytes >= gen_smallest_bytes(s));
		recipe.frame_bytes = s->sizes[i].bytes - 4;
		want(!wire_build(&recipe, frame, sizeof(frame)));
	}
	for (unsigned i = 0; i < GEN_N_FIELDS; i++)
		want(s->fields[i].count >= 1 && s->fields[i].count <= GEN_MAX_FLOWS);
	want(recipe.src_port + s->fields[GEN_SRC_PORT].count <= 65536);
	want(recipe.dst_port + s->fields[GEN_DST_PORT].count <= 65536);
	want(s->pps >= 0 && s->pps <= 1e10);
	want(s->burst >= 1 && s->burst <= GEN_MAX_BURST);
}

// What is built is found again. The ids fit into their bits.
static void check_encap(const struct gen_stream *s)
{
	const struct gen_encap *e = &s->encap;
	const uint64_t most = e->n_labels            ? 1ull << 20
	                      : e->type == GEN_VXLAN ? 1ull << 24
	                                             : 1ull << 32;
	struct gen_stream one = *s;
	struct frame_form form;
	struct encap_found found;

	want(e->type <= GEN_VXLAN && e->n_labels <= GEN_MAX_LABELS);
	want(e->src.family == e->dst.family);
	want((uint64_t)e->id + s->fields[GEN_ENCAP_ID].count <= most);
	one.n_sizes = 1;
	want(!frame_form_make(&form, &one, 1));
	bool is_found = encap_find(form.sizes[0].bytes, form.sizes[0].n_bytes, &found);
	want(is_found == !!e->type);
	want(!is_found || (found.type == e->type && found.n_labels == e->n_labels));
	frame_form_free(&form);
}

static void check_expect(const struct gen_expect *expect)
{
	want(expect->encap.type <= GEN_VXLAN && expect->encap.n_labels <= GEN_MAX_LABELS);
	want(!(expect->encap.has_checksum && expect->encap.has_no_checksum));
	want(expect->n_ports <= GEN_EXPECT_PORTS && expect->n_dscps <= GEN_EXPECT_DSCPS);
	want(!expect->n_ports == !expect->n_dscps);
	want(expect->every <= (expect->n_ports ? GEN_MAX_FLOWS : 0));
	for (unsigned i = 0; i < expect->n_ports; i++)
		want(expect->port[i] < ARRAY_LEN(ports));
	for (unsigned i = 0; i < expect->n_dscps; i++)
		want(expect->dscp[i] < 64);
}

static void check_streams(const struct gen_streams *streams)
{
	bool taken[GEN_MAX_IDS] = {false};

	for (unsigned i = 0; i < streams->n; i++) {
		const struct gen_stream *s = &streams->stream[i];

		check_stream(s);
		if (!s->capture.path[0])
			check_encap(s);
		check_expect(&s->expect);
		want(!taken[s->id]);
		taken[s->id] = true;
		want(s->from < ARRAY_LEN(ports) && s->to < ARRAY_LEN(ports));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct gen_streams streams;
	struct error error = {""};
	json_t *list = json_loadb((const char *)data, n, JSON_DECODE_ANY, NULL);

	if (!list)
		return 0;
	if (!gen_read_streams(&streams, list, ports, ARRAY_LEN(ports), &error))
		check_streams(&streams);
	else
		want(!strncmp(error.text, "streams", 7));
	if (gen_read_streams(&streams, list, NULL, 0, &error))
		want(!strncmp(error.text, "streams", 7));
	json_decref(list);
	return 0;
}
