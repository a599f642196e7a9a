# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact twice
# shows: aarch64 2, aarch64 5
# Each of a loop's 100 instructions has one sample in a hundred, by arithmetic alone, as the period has no divisor in
# common with it, and no other program comes between them: one more or less. Two boots leave the same database.
. /test/oracle.sh
begin -event cycles:u:100003
/tests/counted 2000000 || fail "counted"
end loop
samples=$(samples_of /tests/counted)
dcpilist -asm -no_header hundred counted >/out/listing || fail "dcpilist"
[ "$(grep -c ' +0x' /out/listing)" -ge 100 ] || fail "listing: $(cat /out/listing)"
dcpicat "$db"/*/*/counted* | awk '/^0x/' >/out/counted
cat /out/counted | awk -v total="$samples" '
	{ n++; sum += $2; if (n == 1 || $2 < least) least = $2; if ($2 > most) most = $2 }
	END {
		printf "%d places, %d samples, %d to %d each, %.2f expected\n", n, sum, least, most, total / 100
		exit !(n == 100 && sum == total && most - least <= 1)
	}' || fail "shares"
(cd "$db" && find . -type f | sort | xargs md5sum) >/out/database
