# SPDX-License-Identifier: BSD-2-Clause
# Sourced: ClickHouse servers of a fleet's store on this machine, on free ports of 127.0.0.1, with all their files in one
# folder. Only what was started here is ended, by its process id.
#   fleet_start DIR SHARDS REPLICAS   REPLICAS above 1: with ZooKeeper
#   fleet_stop                        all of it
#   fleet_kill I [SIGNAL], fleet_restart I   server I, from 0: shard I / REPLICAS, replica I % REPLICAS
#   fleet_ask I SQL                   what server I answers; fails, with its message, where that is an error
#   fleet_database MKDB DIR NAME FIRST LAST   a machine's database with the epochs FIRST to LAST - 1; RANDOM is its seed
# Sets fleet_http, the servers' ports.

fleet_http=() fleet_tcp=() fleet_inter=() fleet_pid=() fleet_zookeeper='' fleet_dir=''

# fleet_ports NR: so many free ports, a line each; all are held until all are chosen.
fleet_ports()
{
	python3 -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
for x in s: print(x.getsockname()[1])' "$1"
}

fleet_zookeeper_start()
{
	mkdir -p "$fleet_dir/zookeeper"
	printf '%s\n' tickTime=1000 "dataDir=$fleet_dir/zookeeper" "clientPort=$fleet_zkport" clientPortAddress=127.0.0.1 \
		admin.enableServer=false standaloneEnabled=true >"$fleet_dir/zoo.cfg"
	java -Xmx256m -cp '/usr/share/java/*:/etc/zookeeper/conf' org.apache.zookeeper.server.quorum.QuorumPeerMain \
		"$fleet_dir/zoo.cfg" >"$fleet_dir/zookeeper.log" 2>&1 &
	fleet_zookeeper=$!
	for _ in $(seq 300); do
		! (: <>"/dev/tcp/127.0.0.1/$fleet_zkport") 2>/dev/null || return 0
		sleep 0.1
	done
	echo "fleet: ZooKeeper does not answer" >&2
	return 1
}

fleet_cluster()
{
	local s r i
	echo ' <remote_servers><dcpi>'
	for ((s = 0; s < fleet_shards; s++)); do
		echo '  <shard><internal_replication>true</internal_replication>'
		for ((r = 0; r < fleet_replicas; r++)); do
			i=$((s * fleet_replicas + r))
			echo "   <replica><host>127.0.0.1</host><port>${fleet_tcp[i]}</port></replica>"
		done
		echo '  </shard>'
	done
	echo ' </dcpi></remote_servers>'
}

# fleet_config I
fleet_config()
{
	local d=$fleet_dir/server$1
	mkdir -p "$d/data" "$d/tmp"
	{
		cat <<-X
			<yandex>
			 <logger><level>warning</level><log>$d/log</log><errorlog>$d/errors</errorlog></logger>
			 <http_port>${fleet_http[$1]}</http_port><tcp_port>${fleet_tcp[$1]}</tcp_port>
			 <interserver_http_port>${fleet_inter[$1]}</interserver_http_port>
			 <interserver_http_host>127.0.0.1</interserver_http_host><listen_host>127.0.0.1</listen_host>
			 <max_connections>100</max_connections><mark_cache_size>268435456</mark_cache_size>
			 <path>$d/data/</path><tmp_path>$d/tmp/</tmp_path><users_config>$d/users.xml</users_config>
			 <default_profile>default</default_profile><default_database>default</default_database>
			 <timezone>UTC</timezone>
			 <query_log><database>system</database><table>query_log</table></query_log>
			 <compression><case><min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio>
			  <method>zstd</method></case></compression>
			 <macros><shard>$(($1 / fleet_replicas))</shard><replica>$(($1 % fleet_replicas))</replica></macros>
		X
		fleet_cluster
		[ "$fleet_replicas" = 1 ] ||
			echo " <zookeeper><node><host>127.0.0.1</host><port>$fleet_zkport</port></node></zookeeper>"
		echo '</yandex>'
	} >"$d/config.xml"
	cat >"$d/users.xml" <<-X
		<yandex><profiles><default><max_memory_usage>4000000000</max_memory_usage><log_queries>1</log_queries>
		 </default></profiles>
		<users>
		 <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
		  <quota>default</quota></default>
		 <shipper><password>secret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
		  <quota>default</quota></shipper>
		</users><quotas><default/></quotas></yandex>
	X
}

# fleet_ask I SQL
fleet_ask()
{
	local said
	said=$(curl -sS --max-time 600 -w '%{http_code}' "http://127.0.0.1:${fleet_http[$1]}/" --data-binary "$2") || return 1
	if [ "${said: -3}" != 200 ]; then
		echo "fleet: server $1 refuses '$2': ${said%???}" >&2
		return 1
	fi
	printf '%s' "${said%???}"
}

# fleet_wait I: until it answers, 60 s at most.
fleet_wait()
{
	local tries=0
	until curl -s --max-time 5 "http://127.0.0.1:${fleet_http[$1]}/" --data-binary 'SELECT 1' >/dev/null; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ] || ! kill -0 "${fleet_pid[$1]}" 2>/dev/null; then
			echo "fleet: server $1 does not answer:" >&2
			tail -n 5 "$fleet_dir/server$1/out" "$fleet_dir/server$1/errors" >&2
			return 1
		fi
		sleep 0.2
	done
}

# fleet_restart I
fleet_restart()
{
	clickhouse-server --config-file="$fleet_dir/server$1/config.xml" >"$fleet_dir/server$1/out" 2>&1 &
	fleet_pid[$1]=$!
	fleet_wait "$1"
}

# fleet_kill I [SIGNAL]: and waits for its end.
fleet_kill()
{
	[ -n "${fleet_pid[$1]:-}" ] || return 0
	kill -"${2:-KILL}" "${fleet_pid[$1]}" 2>/dev/null || :
	wait "${fleet_pid[$1]}" 2>/dev/null || :
	fleet_pid[$1]=
}

fleet_start()
{
	local i nr=$(($2 * $3)) ports
	fleet_dir=$1 fleet_shards=$2 fleet_replicas=$3
	mapfile -t ports < <(fleet_ports $((3 * nr + 1)))
	fleet_http=("${ports[@]:0:nr}") fleet_tcp=("${ports[@]:nr:nr}") fleet_inter=("${ports[@]:2 * nr:nr}")
	fleet_zkport=${ports[3 * nr]}
	[ "$3" = 1 ] || fleet_zookeeper_start || return 1
	for ((i = 0; i < nr; i++)); do
		fleet_config $i
		clickhouse-server --config-file="$fleet_dir/server$i/config.xml" >"$fleet_dir/server$i/out" 2>&1 &
		fleet_pid[i]=$!
	done
	for ((i = 0; i < nr; i++)); do
		fleet_wait $i || return 1
	done
}

fleet_stop()
{
	local pid
	for pid in "${fleet_pid[@]}" $fleet_zookeeper; do
		[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || :
		[ -z "$pid" ] || wait "$pid" 2>/dev/null || :
	done
	fleet_pid=() fleet_zookeeper=''
}

# fleet_tables SHIP DATABASE: makes the store's tables on each server.
fleet_tables()
{
	local i more=(-cluster dcpi)
	[ "${#fleet_http[@]}" -gt 1 ] || more=()
	[ "$fleet_replicas" = 1 ] || more+=(-replicas /dcpi)
	for ((i = 0; i < ${#fleet_http[@]}; i++)); do
		fleet_ask $i "CREATE DATABASE IF NOT EXISTS $2" || return 1
		"$1" -make-schema -to "clickhouse://127.0.0.1:${fleet_http[i]}/$2" "${more[@]}" || return 1
	done
}

# fleet_epochs NAME FIRST LAST: with a few images each, one of another machine's too, and one of its own.
fleet_epochs()
{
	local e i app=$DCPI_SRC/tests/data/app/app
	echo "platform $1"
	for ((e = $2; e < $3; e++)); do
		echo "epoch $((1790000000 + 3600 * e))"
		echo "profile file /opt/app/app $app"
		printf 'event %s\n' 'cpu-clock 1000000' 'imiss 5000'
		for i in 1 2 3 4 5; do echo "at $((4096 + 16 * (RANDOM % 40))) $((RANDOM * RANDOM % 100000 + 1)) $((RANDOM % 9))"; done
		echo "profile file /opt/$1/own-$((RANDOM % 5))"
		echo "id $(printf '%s' "$1" | od -An -tx1 | tr -d ' \n')$((RANDOM % 5 + 10))aabbccdd"
		echo 'event cpu-clock 1000000'
		for i in 1 2 3; do echo "at $((64 * (RANDOM % 100))) $((RANDOM % 100 + 1))"; done
		echo "profile named (idle)"
		echo 'event cpu-clock 1000000'
		echo "at 0 $((RANDOM * 200000))"
		echo finish
	done
}

fleet_database() { mkdir -p "$2" && "$1" "$2" </dev/null && fleet_epochs "$3" "$4" "$5" | "$1" "$2"; }
