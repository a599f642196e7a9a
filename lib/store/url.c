/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of a store is taken apart. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

static const char plain[] = "clickhouse://", secure[] = "clickhouses://";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

bool store_is_url(const char *text)
{
	return strncmp(text, plain, strlen(plain)) == 0 ||
	       strncmp(text, secure, strlen(secure)) == 0;
}

static int malformed(const char *text, const char *why, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "malformed address '%.100s' of a store: %s", text, why);
	base_hint(err, "the form is clickhouse://[USER@]HOST[:PORT]/DATABASE");
	return -DCPI_EUSAGE;
}

/* The port behind the host, whose IPv6 address is in brackets; NULL: none is given. */
static const char *port_of(const char *host)
{
	const char *bracket = strchr(host, ']');

	return strchr(bracket ? bracket : host, ':');
}

static int make_server(struct store_url *u, const char *host, bool tls)
{
	return asprintf(&u->server, "http%s://%s%s/", tls ? "s" : "", host,
			port_of(host) ? ""
			: tls	      ? ":8443"
				      : ":8123") < 0
		       ? -ENOMEM
		       : 0;
}

static int take(const char *text, char *copy, bool tls, struct store_url *u, struct base_err *err)
{
	char *slash = strchr(copy, '/'), *host = copy, *at;

	if (!slash || !slash[1] || slash[1 + strspn(slash + 1, letters)])
		return malformed(text, "it needs the name of a database, of letters, digits and _",
				 err);
	*slash = 0;
	at = strrchr(copy, '@');
	if (at) {
		*at = 0;
		host = at + 1;
		if (strchr(copy, ':'))
			return malformed(text, "passwords do not belong there but into a file",
					 err);
		u->user = strdup(copy);
	}
	if (!*host || host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789.-:[]")])
		return malformed(text, "it names no host", err);
	u->database = strdup(slash + 1);
	if ((at && !u->user) || !u->database || make_server(u, host, tls) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot use '%.100s'", text);
	return 0;
}

int store_url_parse(const char *text, struct store_url *out, struct base_err *err)
{
	bool tls = strncmp(text, secure, strlen(secure)) == 0;
	char *copy;
	int r;

	memset(out, 0, sizeof(*out));
	if (!store_is_url(text))
		return malformed(text, "it does not begin with clickhouse://", err);
	copy = strdup(text + strlen(tls ? secure : plain));
	r = copy ? take(text, copy, tls, out, err) : base_fail_errno(err, -ENOMEM, "cannot start");
	free(copy);
	if (r < 0)
		store_url_release(out);
	return r;
}

void store_url_release(struct store_url *u)
{
	free(u->server);
	free(u->database);
	free(u->user);
	memset(u, 0, sizeof(*u));
}
