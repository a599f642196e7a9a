/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions and rows go to a ClickHouse server over HTTP, one request each. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_internal.h"

enum { ANSWER_MAX = 1 << 30, CONNECT_SECONDS = 10, SLOW_BYTES = 100 };

struct store_server {
	CURL *curl;
	struct store_url url;
	char *password;
	struct base_buf answer;
	bool too_long;
	long timeout_ms;
	const volatile sig_atomic_t *stop; /* or NULL */
	char said[CURL_ERROR_SIZE];	   /* libcurl tells of the last failure here */
};

static size_t take_answer(char *data, size_t size, size_t nr, void *ctx)
{
	struct store_server *s = ctx;

	s->too_long = s->answer.len + size * nr > ANSWER_MAX;
	return s->too_long || base_buf_append(&s->answer, data, size * nr) < 0 ? 0 : size * nr;
}

/* libcurl asks this once a second at least. */
static int is_stopped(void *ctx, curl_off_t to_get, curl_off_t got, curl_off_t to_put,
		      curl_off_t put)
{
	const struct store_server *s = ctx;

	(void)to_get, (void)got, (void)to_put, (void)put;
	return s->stop && *s->stop;
}

/* ---- credentials ----------------------------------------------------------------------------- */

static int check_private(int fd, const char *path, struct base_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return base_fail_errno(err, -errno, "cannot read '%s'", path);
	if (!(st.st_mode & (S_IRWXO | S_IWGRP)))
		return 0;
	base_fail(err, -EPERM, "cannot use credentials '%s': others may read or change them", path);
	base_hint(err, "chmod 600 '%s'", path);
	return -EPERM;
}

/* The first line is "PASSWORD", or "USER:PASSWORD". */
static int take_credentials(struct store_server *s, char *line, struct base_err *err)
{
	char *colon;

	line[strcspn(line, "\r\n")] = 0;
	colon = strchr(line, ':');
	if (colon) {
		*colon = 0;
		free(s->url.user);
		s->url.user = strdup(line);
	}
	s->password = strdup(colon ? colon + 1 : line);
	if (!s->password || (colon && !s->url.user))
		return base_fail_errno(err, -ENOMEM, "cannot read credentials");
	return 0;
}

static int read_credentials(struct store_server *s, const char *path, struct base_err *err)
{
	char line[1024] = { 0 };
	struct stat st;
	int fd = base_regular_open(AT_FDCWD, path, &st), r;

	if (fd < 0)
		return base_fail_errno(err, fd, "cannot read credentials '%s'", path);
	r = check_private(fd, path, err);
	if (r >= 0) {
		base_read_part(fd, 0, line, sizeof(line) - 1);
		r = take_credentials(s, line, err);
		explicit_bzero(line, sizeof(line));
	}
	close(fd);
	return r;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* One that is empty is not set. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int prepare(struct store_server *s)
{
	const char *ca = variable("DCPI_STORE_CA");
	CURL *c = s->curl = curl_easy_init();

	if (!c)
		return -ENOMEM;
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, s->said);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, is_stopped);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, s);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A name that is still looked up does not hold up the end. */
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
	if (ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
	if (s->url.user || s->password) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(c, CURLOPT_USERNAME, s->url.user ? s->url.user : "default");
		curl_easy_setopt(c, CURLOPT_PASSWORD, s->password ? s->password : "");
	}
	store_set_timeout(s, 60000);
	return 0;
}

int store_open(const char *url, const char *credentials, struct store_server **out,
	       struct base_err *err)
{
	struct store_server *s = calloc(1, sizeof(*s));
	int r = s ? store_url_parse(url, &s->url, err) : -ENOMEM;

	if (!credentials)
		credentials = variable("DCPI_STORE_CREDENTIALS");
	if (r >= 0 && credentials)
		r = read_credentials(s, credentials, err);
	if (r >= 0)
		r = prepare(s);
	if (r < 0) {
		base_fail_errno(err, r, "cannot use store '%.100s'", url);
		store_close(s);
		return r;
	}
	*out = s;
	return 0;
}

void store_close(struct store_server *s)
{
	if (!s)
		return;
	curl_easy_cleanup(s->curl);
	store_url_release(&s->url);
	if (s->password)
		explicit_bzero(s->password, strlen(s->password));
	free(s->password);
	base_buf_release(&s->answer);
	free(s);
}

void store_set_timeout(struct store_server *s, unsigned int ms)
{
	s->timeout_ms = (long)ms;
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, s->timeout_ms);
	curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_TIME, s->timeout_ms / 1000 + 1);
}

void store_set_stop(struct store_server *s, const volatile sig_atomic_t *stop)
{
	s->stop = stop;
}

const char *store_database(const struct store_server *s)
{
	return s->url.database;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* An error's first line, "Code: 60, e.displayText() = DB::Exception: …", fit for a terminal. */
static void clean_answer(struct store_server *s)
{
	char *text;

	if (base_buf_append(&s->answer, "", 1) < 0)
		return;
	text = (char *)s->answer.data;
	text[strcspn(text, "\r\n")] = 0;
	if (strlen(text) > 300)
		text[300] = 0;
	base_text_clean(text);
}

static int refused_now(struct store_server *s, const char *text, struct base_err *err)
{
	base_fail(err, -EAGAIN, "server '%s' cannot do it now: %s", s->url.server, text);
	if (strstr(text, "o space left") || strstr(text, "NOT_ENOUGH_SPACE") ||
	    strstr(text, "ot enough space"))
		base_hint(err, "the server's disk is full; what is not sent waits");
	return -EAGAIN;
}

/*
 * The numbers are those of ClickHouse's ErrorCodes. One that is not listed here may pass, as
 * ZooKeeper or a disk comes back.
 */
static int refused(struct store_server *s, long status, struct base_err *err)
{
	const char *text = (clean_answer(s), (const char *)s->answer.data);
	long code = text && strncmp(text, "Code: ", 6) == 0 ? strtol(text + 6, NULL, 10) : 0;

	switch (code) {
	case 0:
		return base_fail(err, -EHOSTUNREACH,
				 "server '%s' gave no answer of ClickHouse: status %ld",
				 s->url.server, status);
	case 60: /* unknown table */
	case 81: /* unknown database */
		base_fail(err, -ENOENT, "server '%s' has no store '%s': %s", s->url.server,
			  s->url.database, text);
		base_hint(err, "'dcpiship -make-schema' makes it");
		return -ENOENT;
	case 192: /* unknown user */
	case 193: /* wrong password */
	case 194: /* password needed */
	case 195: /* address not allowed */
	case 291: /* database access denied */
	case 497: /* not enough privileges */
	case 516: /* authentication failed */
		base_fail(err, -EACCES, "server '%s' refuses access: %s", s->url.server, text);
		base_hint(err, "is the file of -credentials right?");
		return -EACCES;
	case 26:  /* quoted string */
	case 27:  /* other input was expected */
	case 32:  /* read behind the end */
	case 33:  /* not all data */
	case 38:  /* date */
	case 41:  /* time */
	case 53:  /* type mismatch */
	case 69:  /* argument out of bounds */
	case 72:  /* number */
	case 117: /* incorrect data */
	case 128: /* array too large */
	case 131: /* string too large */
	case 190: /* arrays of other lengths */
		return base_fail(err, -EPROTO, "server '%s' refuses the rows: %s", s->url.server,
				 text);
	default:
		return refused_now(s, text, err);
	}
}

/*
 * The address of a request: settings, and the statement where rows are the body. Rows that are
 * taken are in the tables of all shards then: by default a server would only promise to send them.
 */
static int make_address(struct store_server *s, const char *sql, struct base_buf *to)
{
	char *escaped = sql ? curl_easy_escape(s->curl, sql, 0) : NULL;
	int r = sql && !escaped ? -ENOMEM : 0;

	if (r >= 0)
		r = base_buf_printf(to, "%s?database=%s&wait_end_of_query=1%s%s", s->url.server,
				    s->url.database, sql ? "&insert_distributed_sync=1&query=" : "",
				    sql ? escaped : "");
	curl_free(escaped);
	return r;
}

/* The numbers are OpenSSL's; other libraries have none, and get no hint. */
static void hint_at_trust(struct store_server *s, struct base_err *err)
{
	long why = 0;

	curl_easy_getinfo(s->curl, CURLINFO_SSL_VERIFYRESULT, &why);
	if (why == 10)
		base_hint(err, "the server's certificate has expired: renew it there");
	else if (why >= 18 && why <= 21)
		base_hint(err, "DCPI_STORE_CA names a file with the certificate of the authority "
			       "that signed the server's");
	else if (why <= 1) /* libcurl has looked at the name alone, and failed */
		base_hint(err, "the address must have a name that is in the server's certificate");
}

static int no_answer(struct store_server *s, CURLcode c, struct base_err *err)
{
	const char *why = s->said[0] ? base_text_clean(s->said) : curl_easy_strerror(c);

	if (c == CURLE_ABORTED_BY_CALLBACK)
		return base_fail(err, -ECANCELED, "stopped while '%s' was asked", s->url.server);
	if (c != CURLE_PEER_FAILED_VERIFICATION)
		return base_fail(err, -EHOSTUNREACH, "server '%s' does not answer: %s",
				 s->url.server, why);
	base_fail(err, -EHOSTUNREACH, "server '%s' cannot be trusted: %s", s->url.server, why);
	hint_at_trust(s, err);
	return -EHOSTUNREACH;
}

static int perform(struct store_server *s, struct base_err *err)
{
	CURLcode c;
	long status = 0;

	base_buf_clear(&s->answer);
	s->too_long = false;
	s->said[0] = 0;
	c = curl_easy_perform(s->curl);
	if (s->too_long)
		return base_fail(err, -DCPI_ELIMIT, "the answer of '%s' is above %d MiB",
				 s->url.server, ANSWER_MAX >> 20);
	if (c != CURLE_OK)
		return no_answer(s, c, err);
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 ? 0 : refused(s, status, err);
}

static int request(struct store_server *s, const char *sql, const void *body, size_t len,
		   struct base_err *err)
{
	struct base_buf address = { 0 };
	struct curl_slist *heads = curl_slist_append(NULL, "Expect:");
	int r = heads ? make_address(s, sql, &address) : -ENOMEM;

	if (r >= 0) {
		curl_easy_setopt(s->curl, CURLOPT_URL, (const char *)address.data);
		curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, heads);
		curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, (const char *)body);
		curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
		r = perform(s, err);
		curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, NULL);
	}
	curl_slist_free_all(heads);
	base_buf_release(&address);
	return r < 0 ? base_fail_errno(err, r, "cannot ask '%s'", s->url.server) : 0;
}

int store_ask(struct store_server *s, const char *sql, struct base_buf *out, struct base_err *err)
{
	int r = request(s, NULL, sql, strlen(sql), err);

	if (r >= 0) {
		base_buf_release(out);
		*out = s->answer;
		memset(&s->answer, 0, sizeof(s->answer));
	}
	return r;
}

int store_ask_number(struct store_server *s, struct base_buf *sql, uint64_t *out,
		     struct base_err *err)
{
	struct base_buf answer = { 0 };
	struct store_reader reader;
	int r = base_buf_printf(sql, " FORMAT RowBinary");

	if (r >= 0)
		r = store_ask(s, (const char *)sql->data, &answer, err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	*out = r < 0 ? 0 : store_get_number(&reader, 8);
	if (r >= 0 && (reader.bad || reader.at != reader.end))
		r = base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
	base_buf_release(&answer);
	base_buf_clear(sql);
	return r;
}

int store_do(struct store_server *s, const char *sql, struct base_err *err)
{
	return request(s, NULL, sql, strlen(sql), err);
}

/* A slow line has a second for each 16 KiB, beside the usual time; a server that neither takes nor
 * gives a byte has the usual time alone. */
static int insert_rows(struct store_server *s, const char *sql, const struct base_buf *rows,
		       struct base_err *err)
{
	int r;

	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, s->timeout_ms + (long)(rows->len / 16));
	r = request(s, sql, rows->data, rows->len, err);
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, s->timeout_ms);
	return r;
}

/* Appends the columns' names with commas between them. 0 or -ENOMEM. */
static int put_columns(const struct store_table *t, struct base_buf *to)
{
	int r = 0;

	for (const struct store_column *c = t->columns; c->name && r >= 0; c++)
		r = base_buf_printf(to, "%s%s", c == t->columns ? "" : ", ", c->name);
	return r;
}

int store_insert(struct store_server *s, const struct store_table *t, const struct base_buf *rows,
		 struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r;

	if (!rows->len)
		return 0;
	r = base_buf_printf(&sql, "INSERT INTO %s (", t->name);
	if (r >= 0)
		r = put_columns(t, &sql);
	if (r >= 0)
		r = base_buf_printf(&sql, ") FORMAT RowBinary");
	if (r >= 0)
		r = insert_rows(s, (const char *)sql.data, rows, err);
	base_buf_release(&sql);
	return r < 0 ? base_fail_errno(err, r, "cannot send rows") : 0;
}

int store_quote(struct base_buf *to, const char *text, size_t len)
{
	int r = base_buf_append(to, "'", 1);

	for (size_t i = 0; i < len && r >= 0; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c == '\'' || c == '\\' || c >= 0x7f)
			r = base_buf_printf(to, "\\x%02x", c);
		else
			r = base_buf_append(to, &text[i], 1);
	}
	return r < 0 ? r : base_buf_printf(to, "'");
}
