/* SPDX-License-Identifier: BSD-2-Clause */
/* The page around a model: its style and script, and a policy that allows these alone. */
#include "page.h"

extern const unsigned char page_css[], page_js[];
extern const size_t page_css_len, page_js_len;

/* RFC 4648, of a hash. */
static void base64(const uint8_t in[32], char out[48])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = 0;

	for (size_t i = 0; i < 32; i += 3) {
		size_t left = 32 - i;
		uint32_t v = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
			     (left > 2 ? in[i + 2] : 0);

		for (size_t k = 0; k < 4; k++)
			out[n++] = k > left ? '=' : digits[v >> (18 - 6 * k) & 63];
	}
	out[n] = '\0';
}

static void hash(const void *data, size_t len, char out[48])
{
	struct base_sha256 s;
	uint8_t sum[32];

	base_sha256_init(&s);
	base_sha256_add(&s, data, len);
	base_sha256_end(&s, sum);
	base64(sum, out);
}

static int put_head(struct base_buf *to)
{
	char css[48], js[48];

	hash(page_css, page_css_len, css);
	hash(page_js, page_js_len, js);
	return base_buf_printf(
		to,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action "
		"'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n"
		"<title>DCPI report</title>\n<style>",
		css, js);
}

int page_html(const struct base_buf *model, struct base_buf *to)
{
	static const char body[] =
		"</style>\n</head>\n<body>\n<div id=\"page\">\n"
		"<noscript>This report shows its data by a script of its own, which is switched "
		"off here. It asks no network for anything.</noscript>\n</div>\n"
		"<script type=\"application/json\" id=\"model\">\n";
	int r = put_head(to);

	if (r >= 0)
		r = base_buf_append(to, page_css, page_css_len);
	if (r >= 0)
		r = base_buf_append(to, body, sizeof(body) - 1);
	if (r >= 0)
		r = base_buf_append(to, model->data, model->len);
	if (r >= 0)
		r = base_buf_printf(to, "</script>\n<script>");
	if (r >= 0)
		r = base_buf_append(to, page_js, page_js_len);
	if (r >= 0)
		r = base_buf_printf(to, "</script>\n</body>\n</html>\n");
	return r;
}
