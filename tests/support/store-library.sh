# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests that ask a ClickHouse of today, which npm has as a library; skips the test where it cannot be had.

for tool in npm node; do
	command -v $tool >/dev/null || { echo "skip: needs $tool"; exit 77; }
done
[ "$(uname -m)" = x86_64 ] || { echo "skip: the library is of x86-64"; exit 77; }
kept=$DCPI_BUILD/chdb
. "$DCPI_SRC/tests/support/npm.sh"
npm_fetch "$kept/chdb" chdb 3.4.0 HMNj4dq3lIrwqxwGSuuEjo9EIlC+k8IjsSQHh1ZStGvV6MRckfvPM2aDqzdW1ti3fldrt9UIntJBm0AbV9nbDQ==
npm_fetch "$kept/lib" @chdb/lib-linux-x64-gnu 26.7.3-stable.1 \
	XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==
mkdir -p "$kept/node_modules/@chdb"
ln -sfn ../chdb/package "$kept/node_modules/chdb"
ln -sfn ../../lib/package "$kept/node_modules/@chdb/lib-linux-x64-gnu"

# start_library: a server in the folder "server", ended when the test ends. Sets $port.
start_library()
{
	mkdir server
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	NODE_PATH=$kept/node_modules node "$DCPI_SRC/tests/support/clickhouse_library.js" "$PWD/server" "$port" >server/log 2>&1 &
	server=$!
	trap 'kill $server 2>/dev/null || :; wait $server 2>/dev/null || :; rm -rf "$work"' EXIT
	for ((i = 0; i < 300; i++)); do
		grep -qx ready server/log && break
		sleep 0.1
	done
}
