/* SPDX-License-Identifier: BSD-2-Clause */
/* The page around a model: its style and script, and a policy that allows these alone. */
#include <errno.h>
#include <zlib.h>

#include "page.h"

extern const unsigned char page_css[], page_js[];
extern const size_t page_css_len, page_js_len;

/* RFC 4648: three bytes as four characters. */
static int put_base64(struct base_buf *to, const uint8_t *in, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = 0;
	void *space;
	int r = base_buf_extend(to, (len + 2) / 3 * 4, &space);
	char *out = space;

	if (r < 0)
		return r;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t v = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
			     (left > 2 ? in[i + 2] : 0);

		for (size_t k = 0; k < 4; k++)
			out[n++] = k > left ? '=' : digits[v >> (18 - 6 * k) & 63];
	}
	return 0;
}

/* The name of a script or style in the policy. */
static int put_hash(struct base_buf *to, const void *data, size_t len)
{
	struct base_sha256 s;
	uint8_t sum[32];
	int r = base_buf_printf(to, "'sha256-");

	base_sha256_init(&s);
	base_sha256_add(&s, data, len);
	base_sha256_end(&s, sum);
	if (r >= 0)
		r = put_base64(to, sum, sizeof(sum));
	return r < 0 ? r : base_buf_printf(to, "'; ");
}

/* A browser takes long to read megabytes of text: they are packed (RFC 1950). */
static int put_model(struct base_buf *to, const struct base_buf *model)
{
	uLongf len = compressBound(model->len);
	struct base_buf packed = { 0 };
	void *space;
	int r = base_buf_extend(&packed, len, &space);

	if (r >= 0 && compress2(space, &len, model->data, model->len, 6) != Z_OK)
		r = -ENOMEM;
	if (r >= 0)
		r = put_base64(to, space, len);
	base_buf_release(&packed);
	return r;
}

static int put_policy(struct base_buf *to)
{
	int r = base_buf_printf(to, "default-src 'none'; style-src ");

	if (r >= 0)
		r = put_hash(to, page_css, page_css_len);
	if (r >= 0)
		r = base_buf_printf(to, "script-src ");
	if (r >= 0)
		r = put_hash(to, page_js, page_js_len);
	return r < 0 ? r : base_buf_printf(to, "base-uri 'none'; form-action 'none'");
}

static int put_head(struct base_buf *to)
{
	int r = base_buf_printf(
		to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"");

	if (r >= 0)
		r = put_policy(to);
	return r < 0 ? r
		     : base_buf_printf(to, "\">\n<meta name=\"viewport\" "
					   "content=\"width=device-width, initial-scale=1\">\n"
					   "<meta name=\"referrer\" content=\"no-referrer\">\n"
					   "<title>DCPI report</title>\n<style>");
}

int page_html(const struct base_buf *model, struct base_buf *to)
{
	static const char body[] =
		"</style>\n</head>\n<body>\n<div id=\"page\">\n"
		"<noscript>This report shows its data by a script of its own, which is switched "
		"off here. It asks no network for anything.</noscript>\n</div>\n"
		"<script type=\"application/octet-stream\" id=\"model\">";
	int r = put_head(to);

	if (r >= 0)
		r = base_buf_append(to, page_css, page_css_len);
	if (r >= 0)
		r = base_buf_append(to, body, sizeof(body) - 1);
	if (r >= 0)
		r = put_model(to, model);
	if (r >= 0)
		r = base_buf_printf(to, "</script>\n<script type=\"module\">");
	if (r >= 0)
		r = base_buf_append(to, page_js, page_js_len);
	if (r >= 0)
		r = base_buf_printf(to, "</script>\n</body>\n</html>\n");
	return r;
}
