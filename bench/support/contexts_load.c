/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of bench/contexts that are libraries of Debian's, linked statically, so that all
 * functions have names: contexts_load lua SCRIPT ARG     runs a Lua program contexts_load sqlite
 * FILE        executes SQL contexts_load xz|zstd FILE       compresses a file Prints how much came
 * out.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <lzma.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static char *content(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *data = malloc((16u << 20) + 1);

	if (!f || !data) {
		fprintf(stderr, "contexts_load: cannot read '%s'\n", path);
		exit(1);
	}
	*len = fread(data, 1, 16u << 20, f);
	data[*len] = 0;
	fclose(f);
	return data;
}

static size_t run_lua(char **argv)
{
	lua_State *l = luaL_newstate();

	luaL_openlibs(l);
	lua_newtable(l);
	lua_pushstring(l, argv[1]);
	lua_rawseti(l, -2, 1);
	lua_setglobal(l, "arg");
	if (luaL_dofile(l, argv[0])) {
		fprintf(stderr, "contexts_load: %s\n", lua_tostring(l, -1));
		exit(1);
	}
	lua_close(l);
	return 1;
}

static int count_row(void *ctx, int nr, char **values, char **names)
{
	(void)names;
	for (int i = 0; i < nr; i++)
		*(size_t *)ctx += values[i] ? strlen(values[i]) : 0;
	return 0;
}

static size_t run_sqlite(const char *sql)
{
	sqlite3 *db = NULL;
	size_t rows = 0;

	if (sqlite3_open(":memory:", &db) || sqlite3_exec(db, sql, count_row, &rows, NULL)) {
		fprintf(stderr, "contexts_load: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	sqlite3_close(db);
	return rows;
}

static size_t run_xz(const char *data, size_t len)
{
	size_t bound = lzma_stream_buffer_bound(len), out = 0;
	uint8_t *to = malloc(bound);

	if (!to || lzma_easy_buffer_encode(2, LZMA_CHECK_CRC64, NULL, (const uint8_t *)data, len,
					   to, &out, bound))
		exit(1);
	free(to);
	return out;
}

static size_t run_zstd(const char *data, size_t len)
{
	size_t bound = ZSTD_compressBound(len), out;
	char *to = malloc(bound);

	out = to ? ZSTD_compress(to, bound, data, len, 10) : 0;
	if (!out || ZSTD_isError(out))
		exit(1);
	free(to);
	return out;
}

int main(int argc, char **argv)
{
	size_t len = 0, out = 0;
	char *data = NULL;

	if (argc < 3) {
		fputs("usage: contexts_load lua|sqlite|xz|zstd FILE [ARG]\n", stderr);
		return 2;
	}
	if (strcmp(argv[1], "lua"))
		data = content(argv[2], &len);
	if (!strcmp(argv[1], "lua") && argc == 4)
		out = run_lua(argv + 2);
	else if (!strcmp(argv[1], "sqlite"))
		out = run_sqlite(data);
	else if (!strcmp(argv[1], "xz"))
		out = run_xz(data, len);
	else if (!strcmp(argv[1], "zstd"))
		out = run_zstd(data, len);
	free(data);
	printf("%zu\n", out);
	return 0;
}
