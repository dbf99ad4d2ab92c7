// Arbitrary bytes as a capture file: either frames within their memory, with stamps within the
// frames, or one error message. The first byte selects the stream's options.
#include "gen/capture.h"

#include "wire/headers.h"
#include "wire/stamp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct capture *c)
{
	uint64_t n_bytes = 0, before = 0;
	uint32_t n_stamped = 0;

	want(c->n >= 1);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct capture_frame *f = &c->frame[i];
		unsigned stamp = f->is_tcp ? WIRE_TCP_BYTES + STAMP_TCP_PAYLOAD_BYTES
		                           : WIRE_UDP_BYTES + STAMP_BYTES;

		want(f->offset == n_bytes && f->n_bytes >= 60 && f->n_bytes <= c->longest);
		want(f->at_ns >= before && f->at_ns <= c->lap_ns);
		want(!f->layer4 || f->layer4 + stamp <= f->n_bytes);
		n_bytes += f->n_bytes;
		before = f->at_ns;
		n_stamped += f->layer4 > 0;
	}
	want(n_bytes == c->n_bytes && n_stamped == c->n_stamped);
	want(!c->n_left_out == !c->left_out[0]);
	want(strnlen(c->left_out, sizeof(c->left_out)) < sizeof(c->left_out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gen_stream stream = {.capture = {.path = "it"}};
	struct error error = {""};
	struct capture capture;

	if (n < 2)
		return 0;
	stream.capture.stamps = data[0] & 1;
	stream.capture.sets_dst_mac = data[0] & 2;
	FILE *file = fmemopen((void *)(data + 1), n - 1, "r");
	if (!file)
		return 0;
	if (!capture_read_file(&capture, file, &stream, &error))
		check(&capture);
	else
		want(!strncmp(error.text, "it", 2) && error.text[strlen(error.text) - 1] != '\n');
	capture_free(&capture);
	return 0;
}
