// The odometers of a stream's fields. Worker; creation: control thread.
#include "gen/fields.h"

#include "base/bits.h"

#include <string.h>

// Strides are approximately these fractions of the counts. No two of them have a simple ratio, so
// digits are neither in order nor correlated with each other.
static const double share_of_stride[GEN_N_FIELDS] = {
	0.6180339887498949, // (sqrt(5) - 1) / 2
	0.4142135623730951, // sqrt(2) - 1
	0.7320508075688772, // sqrt(3) - 1
	0.6457513110645906, // sqrt(7) - 2
	0.3166247903553998, // sqrt(11) - 3
	0.6055512754639891, // sqrt(13) - 3
	0.1231056256176606, // sqrt(17) - 4
	0.3588989435406740, // sqrt(19) - 4
	0.7958315233127191, // sqrt(23) - 4
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

// The last 32 bits of an address.
static uint32_t last_bits(const uint8_t *bytes, unsigned n)
{
	uint32_t be;

	memcpy(&be, bytes + n - sizeof(be), sizeof(be));
	return be32toh(be);
}

static uint32_t last_of_mac(const struct wire_mac *mac)
{
	return last_bits(mac->bytes, sizeof(mac->bytes));
}

static uint32_t last_of_addr(const struct wire_addr *addr)
{
	return last_bits(addr->bytes, addr->family == 6 ? 16 : 4);
}

uint32_t fields_first(const struct gen_stream *stream, unsigned field)
{
	const struct wire_recipe *recipe = &stream->recipe;

	switch (field) {
	case GEN_SRC_MAC:
		return last_of_mac(&recipe->src_mac);
	case GEN_DST_MAC:
		return last_of_mac(&recipe->dst_mac);
	case GEN_SRC_IP:
		return last_of_addr(&recipe->src);
	case GEN_DST_IP:
		return last_of_addr(&recipe->dst);
	case GEN_SRC_PORT:
		return recipe->src_port;
	case GEN_DST_PORT:
		return recipe->dst_port;
	case GEN_ENCAP_ID:
		return stream->encap.id;
	case GEN_INNER_SRC_MAC:
		return last_of_mac(&stream->encap.inner_src);
	default:
		return last_of_mac(&stream->encap.inner_dst);
	}
}

// Number of combinations; the exact value does not matter above GEN_MAX_FLOWS.
static uint64_t product(const struct fields_digit digit[], unsigned n)
{
	uint64_t product = 1;

	for (unsigned i = 0; i < n && product <= GEN_MAX_FLOWS; i++)
		product *= digit[i].count;
	return product;
}

static bool stride_is_coprime(const struct fields *fields)
{
	for (unsigned i = 0; i < fields->n_random; i++) {
		uint64_t count = fields->random[i].count, rest = 0;

		for (unsigned k = fields->n_random; k-- > 0;)
			rest = (rest * (fields->random[k].count % count) +
				       fields->random[k].stride) %
			       count;
		if (common_divisor(rest, count) != 1)
			return false;
	}
	return true;
}

static void choose_stride(struct fields *fields)
{
	for (unsigned i = 0; i < fields->n_random; i++)
		fields->random[i].stride = fields->random[i].count * share_of_stride[i];
	while (!stride_is_coprime(fields))
		for (unsigned i = 0; i < fields->n_random; i++) {
			if (++fields->random[i].stride < fields->random[i].count)
				break;
			fields->random[i].stride = 0;
		}
}

// This digit of `times` strides; the remainder for the next digit is returned in *carry.
static uint32_t digit_of(const struct fields_digit *digit, uint64_t times, uint64_t *carry)
{
	uint64_t sum = times * digit->stride + *carry;

	*carry = sum / digit->count;
	return sum % digit->count;
}

static void fill_steps(struct fields *fields, unsigned times)
{
	uint64_t carry = 0;

	for (unsigned i = 0; i < fields->n_random; i++)
		fields->random[i].steps[times] = digit_of(&fields->random[i], times, &carry);
}

void fields_make(struct fields *fields, const struct gen_stream *stream)
{
	*fields = (struct fields){.n_flows = stream->n_flows, .round = UINT64_MAX};
	for (unsigned i = 0; i < GEN_N_FIELDS; i++) {
		struct fields_digit digit = {.count = stream->fields[i].count,
			.first = fields_first(stream, i),
			.field = i};

		if (digit.count <= 1)
			continue;
		digit.reciprocal = UINT64_MAX / digit.count + 1;
		if (stream->fields[i].is_random)
			fields->random[fields->n_random++] = digit;
		else
			fields->counting[fields->n_counting++] = digit;
	}
	choose_stride(fields);
	for (unsigned k = 0; k <= FIELDS_STEPS; k++)
		fill_steps(fields, k);
	uint64_t c = product(fields->counting, fields->n_counting);
	uint64_t r = product(fields->random, fields->n_random);
	if (fields->n_random && c <= GEN_MAX_FLOWS && r <= GEN_MAX_FLOWS)
		fields->round = c / common_divisor(c, r) * r;
	fields->round_reciprocal = UINT64_MAX / fields->round + 1;
	fields_seek(fields, 0);
}

void fields_fill_fixed(const struct gen_stream *stream, struct frame_values *values)
{
	for (unsigned field = 0; field < GEN_N_FIELDS; field++)
		for (unsigned i = 0; i < FRAME_VALUES; i++)
			values->field[field][i] = fields_first(stream, field);
}

void fields_seek(struct fields *fields, uint32_t flow)
{
	uint64_t rest = flow, carry = 0, times = flow + flow / fields->round;

	for (unsigned i = 0; i < fields->n_counting; i++) {
		fields->counting[i].value = rest % fields->counting[i].count;
		rest /= fields->counting[i].count;
	}
	for (unsigned i = 0; i < fields->n_random; i++)
		fields->random[i].value = digit_of(&fields->random[i], times, &carry);
	fields->flow = flow;
	fields->to_skip = fields->round - flow % fields->round;
}

// Both may write up to FRAME_SPARE extra values, which are overwritten later.
static inline void write_rising(uint32_t *to, uint32_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i += FRAME_SPARE)
		for (unsigned k = 0; k < FRAME_SPARE; k++)
			to[i + k] = value + i + k;
}

static inline void write_same(uint32_t *to, uint32_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i += FRAME_SPARE)
		for (unsigned k = 0; k < FRAME_SPARE; k++)
			to[i + k] = value;
}

static void carry_counting(struct fields *fields)
{
	for (unsigned i = 0; i < fields->n_counting; i++) {
		struct fields_digit *digit = &fields->counting[i];

		if (i && ++digit->value < digit->count)
			return;
		digit->value = 0;
	}
}

// Runs between two carries: the first field is incremented, the others are constant.
static void fill_counting(struct fields *fields, struct frame_values *values, unsigned at,
	unsigned end)
{
	struct fields_digit *fast = &fields->counting[0];

	while (at < end) {
		unsigned run = MIN_OF(end - at, fast->count - fast->value);

		write_rising(&values->field[fast->field][at], fast->first + fast->value, run);
		for (unsigned i = 1; i < fields->n_counting; i++) {
			const struct fields_digit *slow = &fields->counting[i];

			write_same(&values->field[slow->field][at], slow->first + slow->value, run);
		}
		at += run;
		fast->value += run;
		if (fast->value == fast->count)
			carry_counting(fields);
	}
}

// Advances the odometer by a number of strides for each of FIELDS_STEPS frames: the digits of these
// multiples are added to the current state for all frames at once, one digit after the other;
// carries are kept in between. count - value does not overflow where value + step would.
static inline void write_scattered(const struct fields *fields, struct frame_values *values,
	unsigned at)
{
	uint32_t carry[FIELDS_STEPS] = {0};

	for (unsigned i = 0; i < fields->n_random; i++) {
		const struct fields_digit *digit = &fields->random[i];
		const uint32_t value = digit->value, count = digit->count, first = digit->first;
		uint32_t *to = &values->field[digit->field][at];

		for (unsigned k = 0; k < FIELDS_STEPS; k++) {
			uint32_t step = digit->steps[k] + carry[k];

			carry[k] = step >= count - value;
			to[k] = first + value + step - (carry[k] ? count : 0);
		}
	}
}

static inline void step_random(struct fields *fields, unsigned n_strides)
{
	uint32_t carry = 0;

	for (unsigned i = 0; i < fields->n_random; i++) {
		struct fields_digit *digit = &fields->random[i];
		uint32_t step = digit->steps[n_strides] + carry;

		carry = step >= digit->count - digit->value;
		digit->value += step - (carry ? digit->count : 0);
	}
}

static void fill_random(struct fields *fields, struct frame_values *values, unsigned at,
	unsigned end)
{
	for (unsigned run; at < end; at += run) {
		run = MIN_OF(end - at, (unsigned)FIELDS_STEPS);
		write_scattered(fields, values, at);
		step_random(fields, run);
	}
}

static void restart(struct fields *fields)
{
	for (unsigned i = 0; i < fields->n_counting; i++)
		fields->counting[i].value = 0;
	for (unsigned i = 0; i < fields->n_random; i++)
		fields->random[i].value = 0;
	fields->flow = 0;
	fields->to_skip = fields->round;
}

void fields_fill(struct fields *fields, struct frame_values *values, unsigned n)
{
	if (!fields->n_counting && !fields->n_random)
		return;
	for (unsigned at = 0; at < n;) {
		uint64_t to_event = MIN_OF(fields->n_flows - fields->flow, fields->to_skip);
		unsigned end = at + MIN_OF(n - at, to_event);

		if (fields->n_counting)
			fill_counting(fields, values, at, end);
		if (fields->n_random)
			fill_random(fields, values, at, end);
		fields->flow += end - at;
		fields->to_skip -= end - at;
		at = end;
		if (fields->flow == fields->n_flows) {
			restart(fields);
		} else if (!fields->to_skip) {
			step_random(fields, 1);
			fields->to_skip = fields->round;
		}
	}
}

// n / count, and the remainder in *rest. The product of n and the reciprocal is at most n too
// large, so the quotient is at most one too large.
static inline uint64_t divide(uint64_t n, uint64_t count, uint64_t reciprocal, uint64_t *rest)
{
	uint64_t quotient = (unsigned __int128)n * reciprocal >> 64;
	bool is_above = quotient * count > n;

	*rest = n - quotient * count + (is_above ? count : 0);
	return quotient - is_above;
}

static inline void write_counting(const struct fields *fields, struct frame_values *values,
	const uint32_t flow[], unsigned n)
{
	uint64_t left[GEN_MAX_BURST];

	for (unsigned k = 0; k < n; k++)
		left[k] = flow[k];
	for (unsigned i = 0; i < fields->n_counting; i++) {
		const struct fields_digit *digit = &fields->counting[i];
		uint32_t *to = values->field[digit->field];

		for (unsigned k = 0; k < n; k++) {
			uint64_t value;

			left[k] = divide(left[k], digit->count, digit->reciprocal, &value);
			to[k] = digit->first + value;
		}
	}
}

// Same as digit_of, for all frames.
static inline void write_random(const struct fields *fields, struct frame_values *values,
	const uint32_t flow[], unsigned n)
{
	uint64_t times[GEN_MAX_BURST], carry[GEN_MAX_BURST] = {0}, rest;

	for (unsigned k = 0; k < n; k++)
		times[k] =
			flow[k] + divide(flow[k], fields->round, fields->round_reciprocal, &rest);
	for (unsigned i = 0; i < fields->n_random; i++) {
		const struct fields_digit *digit = &fields->random[i];
		uint32_t *to = values->field[digit->field];

		for (unsigned k = 0; k < n; k++) {
			uint64_t sum = times[k] * digit->stride + carry[k], value;

			carry[k] = divide(sum, digit->count, digit->reciprocal, &value);
			to[k] = digit->first + value;
		}
	}
}

void fields_fill_flows(const struct fields *fields, struct frame_values *values,
	const uint32_t flow[], unsigned n)
{
	if (fields->n_counting)
		write_counting(fields, values, flow, n);
	if (fields->n_random)
		write_random(fields, values, flow, n);
}
