// Reads capture files into memory, using libpcap. Control thread.
#include "gen/capture.h"

#include "base/bits.h"
#include "base/vector.h"
#include "wire/headers.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_BYTES = GEN_MIN_SIZE - WIRE_FCS_BYTES, MOST_BYTES = GEN_MAX_SIZE - WIRE_FCS_BYTES };
enum { MOST_SECONDS = 1 << 30, NS = 1000000000 };

struct reading {
	struct capture *out;
	const struct gen_stream *stream;
	pcap_t *pcap;
	const char *path;
	uint64_t first_s, first_ns;
	size_t frame_capacity, byte_capacity;
	struct error *error;
};

static int check_frame(struct reading *r, const struct pcap_pkthdr *head)
{
	unsigned number = r->out->n + 1;

	if (head->caplen < head->len)
		return error_set(r->error, -EINVAL,
			"%s: frame %u was truncated to %u of %u bytes when it was captured; "
			"capture whole frames (tcpdump -s 0)",
			r->path, number, head->caplen, head->len);
	if (head->caplen < WIRE_ETHER_BYTES || head->caplen > MOST_BYTES)
		return error_set(r->error, -EINVAL,
			"%s: frame %u has %u bytes; expected %d to %d without FCS", r->path, number,
			head->caplen, WIRE_ETHER_BYTES, MOST_BYTES);
	if (r->out->n == CAPTURE_MAX_FRAMES || r->out->n_bytes + MOST_BYTES > CAPTURE_MAX_BYTES)
		return error_set(r->error, -EFBIG,
			"%s has more than %d frames or %d MiB; use a part of it (editcap -r)",
			r->path, CAPTURE_MAX_FRAMES, CAPTURE_MAX_BYTES >> 20);
	return 0;
}

// Time since the first frame. Timestamps that go backwards or are implausible are replaced by the
// previous one.
static uint64_t since_first(struct reading *r, const struct pcap_pkthdr *head)
{
	long left = head->ts.tv_usec; // in ns; libpcap returns negative values for malformed files
	uint64_t s = head->ts.tv_sec, ns = left >= 0 && left < NS ? left : 0, before = 0;

	if (r->out->n)
		before = r->out->frame[r->out->n - 1].at_ns;
	else
		r->first_s = s, r->first_ns = ns;
	if (s < r->first_s || s - r->first_s > MOST_SECONDS)
		return before;
	uint64_t now = (s - r->first_s) * NS + ns;
	return now < r->first_ns ? before : MAX_OF(before, now - r->first_ns);
}

static void write_macs(const struct gen_stream *stream, uint8_t *frame)
{
	if (stream->capture.sets_dst_mac)
		memcpy(frame, stream->recipe.dst_mac.bytes, 6);
	if (stream->capture.sets_src_mac)
		memcpy(frame + 6, stream->recipe.src_mac.bytes, 6);
}

static int add_frame(struct reading *r, const struct pcap_pkthdr *head, const uint8_t *bytes)
{
	struct capture *out = r->out;
	int err = check_frame(r, head);
	unsigned n_bytes = MAX_OF(head->caplen, (unsigned)LEAST_BYTES);

	if (err)
		return err;
	if (vector_reserve(&out->frame, &r->frame_capacity, out->n + 1, sizeof(out->frame[0])) ||
		vector_reserve(&out->bytes, &r->byte_capacity, out->n_bytes + n_bytes, 1))
		return error_set(r->error, -ENOMEM, "%s: not enough memory for its frames",
			r->path);
	uint8_t *to = out->bytes + out->n_bytes;
	struct capture_frame target = {.at_ns = since_first(r, head),
		.offset = out->n_bytes,
		.n_bytes = n_bytes};

	memcpy(to, bytes, head->caplen);
	memset(to + head->caplen, 0, n_bytes - head->caplen);
	write_macs(r->stream, to);
	if (r->stream->capture.stamps)
		capture_make_room(to, &target);
	out->n_stamped += target.layer4 > 0;
	out->frame[out->n++] = target;
	out->n_bytes += n_bytes;
	out->longest = MAX_OF(out->longest, n_bytes);
	return 0;
}

static int check_kind(struct reading *r)
{
	int kind = pcap_datalink(r->pcap);
	const char *name = pcap_datalink_val_to_name(kind);

	if (kind == DLT_EN10MB)
		return 0;
	return error_set(r->error, -EINVAL,
		"%s has link-layer type %s; expected an Ethernet capture", r->path,
		name ? name : "unknown");
}

static int read_frames(struct reading *r)
{
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	int got, err = check_kind(r);

	while (!err && (got = pcap_next_ex(r->pcap, &head, &bytes)) != PCAP_ERROR_BREAK) {
		if (got == 1)
			err = add_frame(r, head, bytes);
		else
			err = error_set(r->error, -EINVAL,
				"%s is truncated or damaged after frame %u (%.80s); capture again, "
				"or repair the file",
				r->path, r->out->n, pcap_geterr(r->pcap));
	}
	if (!err && !r->out->n)
		err = error_set(r->error, -EINVAL,
			"%s has no frames; expected a capture with at least one", r->path);
	return err;
}

// The gap between the last frame and the first one of the next lap is the mean gap.
static void settle_lap(struct capture *out)
{
	uint64_t last_ns = out->frame[out->n - 1].at_ns;

	out->lap_ns = out->n > 1 ? last_ns + last_ns / (out->n - 1) : 0;
}

int capture_read_file(struct capture *out, FILE *file, const struct gen_stream *stream,
	struct error *error)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	struct reading r = {.out = out,
		.stream = stream,
		.path = stream->capture.path,
		.error = error};

	*out = (struct capture){0};
	r.pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!r.pcap) {
		fclose(file);
		return error_set(error, -EINVAL,
			"%s is not a capture file (%.80s); expected a pcap or pcapng file", r.path,
			text);
	}
	int err = read_frames(&r);
	pcap_close(r.pcap);
	if (!err)
		settle_lap(out);
	return err;
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS + time->tv_nsec;
}

static struct gen_file file_of(const struct stat *target)
{
	return (struct gen_file){.device = target->st_dev,
		.inode = target->st_ino,
		.n_bytes = target->st_size,
		.modified_ns = ns_of(&target->st_mtim),
		.changed_ns = ns_of(&target->st_ctim)};
}

static int check_unchanged(const struct capture *out, const char *path, struct error *error)
{
	struct gen_file now = {0};
	struct stat target;

	if (!stat(path, &target))
		now = file_of(&target);
	if (!memcmp(&now, &out->file, sizeof(now)))
		return 0;
	return error_set(error, -EINVAL,
		"%s was changed while it was read; try again when no program is writing to it",
		path);
}

int capture_read(struct capture *out, const struct gen_stream *stream, struct error *error)
{
	const char *path = stream->capture.path;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // O_NONBLOCK: opening a pipe would
	                                                        // block
	struct stat target;
	int err;

	*out = (struct capture){0};
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	FILE *file = fstat(fd, &target) || !S_ISREG(target.st_mode) ? NULL : fdopen(fd, "r");
	if (file) {
		err = capture_read_file(out, file, stream, error);
		out->file = file_of(&target);
		return err ? err : check_unchanged(out, path, error);
	}
	close(fd);
	return error_set(error, -EINVAL, "%s is not a file; expected a capture file", path);
}

void capture_free(struct capture *capture)
{
	free(capture->frame);
	free(capture->bytes);
	*capture = (struct capture){0};
}
