// Netlink attributes by tables. Pure: any bytes, no state.
#include "netlink/attrs.h"

#include "wire/addr.h"

#include <arpa/inet.h>
#include <string.h>

const struct nlattr *attrs_next(struct piece *rest)
{
	const struct nlattr *attr = rest->bytes;
	uint32_t step;

	if (rest->n < NLA_HDRLEN || attr->nla_len < NLA_HDRLEN || attr->nla_len > rest->n)
		return NULL;
	step = NLA_ALIGN(attr->nla_len);
	if (step > rest->n)
		step = rest->n;
	*rest = (struct piece){(const uint8_t *)rest->bytes + step, rest->n - step};
	return attr;
}

bool attrs_of(const struct nlmsghdr *message, size_t header, struct piece *out)
{
	size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(header);

	if (message->nlmsg_len < NLMSG_HDRLEN + header)
		return false;
	if (skip > message->nlmsg_len)
		skip = message->nlmsg_len;
	*out = (struct piece){(const uint8_t *)message + skip, message->nlmsg_len - skip};
	return true;
}

static bool take_addr(struct wire_addr *out, const struct piece *value)
{
	if (value->n != 4 && value->n != 16)
		return false;
	*out = (struct wire_addr){.family = value->n == 4 ? 4 : 6};
	memcpy(out->bytes, value->bytes, value->n);
	return true;
}

static bool take_number(void *out, const struct piece *value, size_t size)
{
	if (value->n < size)
		return false;
	memcpy(out, value->bytes, size);
	return true;
}

static bool take_u16_be(uint16_t *out, const struct piece *value)
{
	if (!take_number(out, value, sizeof(*out)))
		return false;
	*out = ntohs(*out);
	return true;
}

static bool take_text(char *out, const struct piece *value)
{
	size_t n = strnlen(value->bytes, value->n);

	if (n > 15)
		n = 15;
	memcpy(out, value->bytes, n);
	out[n] = 0;
	return true;
}

static bool take_bool(bool *out, const struct piece *value)
{
	if (!value->n)
		return false;
	*out = *(const uint8_t *)value->bytes != 0;
	return true;
}

static bool take_one(const struct want *want, const struct piece *value, void *out)
{
	void *to = (uint8_t *)out + want->at;

	switch (want->form) {
	case WANT_U8:
		return take_number(to, value, 1);
	case WANT_U16:
		return take_number(to, value, 2);
	case WANT_U16_BE:
		return take_u16_be(to, value);
	case WANT_U32:
		return take_number(to, value, 4);
	case WANT_TEXT:
		return take_text(to, value);
	case WANT_ADDR:
		return take_addr(to, value);
	case WANT_MAC:
		return value->n != sizeof(struct wire_mac) || take_number(to, value, 6);
	case WANT_BOOL:
		return take_bool(to, value);
	case WANT_THERE:
		*(bool *)to = true;
		return true;
	case WANT_INSIDE:
		return attrs_take(want->inside, value, out);
	case WANT_TAKE:
		return want->take(out, value);
	}
	return true;
}

bool attrs_take(const struct wants *wants, const struct piece *attrs, void *out)
{
	struct piece rest = *attrs;
	const struct nlattr *attr;

	while ((attr = attrs_next(&rest))) {
		struct piece value = attrs_value(attr);
		unsigned type = attrs_type(attr);

		if (type < wants->n && !take_one(&wants->row[type], &value, out))
			return false;
	}
	return rest.n == 0;
}
