// Simple and slow by design. Tests only.
#include "fib/model.h"

#include <endian.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

uint32_t model_random(uint32_t below)
{
	state ^= state << 13; // xorshift64
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 16) % below;
}

model_bits model_number(const struct wire_addr *addr)
{
	uint64_t half[2];

	memcpy(half, addr->bytes, sizeof(half));
	return (model_bits)be64toh(half[0]) << 64 | be64toh(half[1]);
}

struct wire_addr model_addr(uint8_t family, model_bits number)
{
	struct wire_addr addr = {.family = family};

	for (unsigned i = 0; i < (family == 4 ? 4 : 16); i++)
		addr.bytes[i] = number >> (120 - 8 * i);
	return addr;
}

static model_bits mask(unsigned len)
{
	return len ? ~(model_bits)0 << (128 - len) : 0;
}

model_bits model_last(const struct wire_prefix *prefix)
{
	model_bits end = model_number(&prefix->addr) | ~mask(prefix->len);

	return prefix->addr.family == 4 ? end & mask(32) : end;
}

int model_find(const struct model *model, const struct wire_prefix *prefix)
{
	for (size_t i = 0; i < model->n; i++) {
		const struct wire_prefix *other = &model->route[i].prefix;
		if (other->len == prefix->len &&
			!memcmp(&other->addr, &prefix->addr, sizeof(other->addr)))
			return i;
	}
	return -1;
}

int model_longest(const struct model *model, const struct wire_addr *addr)
{
	const model_bits number = model_number(addr);
	int best = -1;

	for (size_t i = 0; i < model->n; i++) {
		const struct wire_prefix *prefix = &model->route[i].prefix;
		if (prefix->addr.family != addr->family ||
			(number & mask(prefix->len)) != model_number(&prefix->addr))
			continue;
		if (best < 0 || prefix->len > model->route[best].prefix.len)
			best = i;
	}
	return best;
}

void model_set(struct model *model, const struct fib_route *route)
{
	int at = model_find(model, &route->prefix);

	model->route[at < 0 ? model->n++ : (size_t)at] = *route;
}

void model_delete(struct model *model, const struct wire_prefix *prefix)
{
	int at = model_find(model, prefix);

	model->route[at] = model->route[--model->n];
}

static model_bits random_number(void)
{
	model_bits number = 0;

	for (unsigned i = 0; i < 5; i++)
		number = number << 32 | model_random(0xffffffff);
	return number;
}

struct wire_addr model_random_addr(uint8_t family)
{
	static const uint8_t bases4[][4] = {{10, 1, 1, 7}, {10, 1, 2, 200}, {10, 1, 255, 255},
		{192, 0, 2, 0}, {0, 0, 0, 0}, {255, 255, 255, 255}};
	static const uint8_t bases6[][16] = {{0x20, 1, 0xd, 0xb8},
		{0x20, 1, 0xd, 0xb8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		{0x20, 1, 0xd, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff},
		{0x2a}, {0}};
	struct wire_addr base = {.family = family};
	const unsigned bits = family == 4 ? 32 : 128;

	if (family == 4)
		memcpy(base.bytes, bases4[model_random(6)], 4);
	else
		memcpy(base.bytes, bases6[model_random(5)], 16);
	unsigned keep = model_random(bits + 1), width = 1 + model_random(20);
	model_bits noise =
		random_number() & ~mask(keep) & mask(keep + width > 128 ? 128 : keep + width);
	return model_addr(family, model_number(&base) ^ noise);
}

struct wire_prefix model_random_prefix(uint8_t family)
{
	struct wire_prefix prefix = {.addr = model_random_addr(family)};

	prefix.len = model_random((family == 4 ? 32 : 128) + 1);
	prefix.addr = model_addr(family, model_number(&prefix.addr) & mask(prefix.len));
	return prefix;
}

bool model_next(const struct fib *fib, uint8_t family, const struct wire_prefix *after,
	struct fib_route *out)
{
	return fib_next(fib, &(struct fib_walk){.after = after, .family = family}, out);
}
